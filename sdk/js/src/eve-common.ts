/** What both of eve's contracts need: options, names, sessions, seed files. */

import { gzipSync } from "node:zlib";
import { Client } from "./client.js";
import { NotFoundError } from "./errors.js";
import { FORGOTTEN_SECONDS, IDLE_SECONDS } from "./lifetimes.js";
import type { Sandbox } from "./sandbox.js";
import { makeSession, type Session } from "./session.js";
import { tarOf } from "./tar.js";
import type { ClientOptions } from "./transport.js";
import type { CreateOptions, NetworkPolicy, Resources } from "./types.js";

export interface AtollEveOptions extends ClientOptions {
  /** The template that sandboxes are made from; `base` where it is missing. */
  template?: string;
  env?: Readonly<Record<string, string>>;
  /** Names of secrets that become variables of every command. */
  secrets?: "all" | readonly string[];
  resources?: Resources;
  /** For every sandbox and while templates are built; nothing is reachable where it is missing. */
  networkPolicy?: NetworkPolicy;
  profile?: "dev" | "strict";
  user?: string;
  /** Seconds after which a sandbox that nobody uses is stopped; its files stay, and the next use starts it. */
  idleTimeoutSeconds?: number;
  /** Seconds after which a stopped sandbox is deleted: eve does not always say when a session is over. */
  deleteAfterStoppedSeconds?: number;
}

export interface UseOptions {
  networkPolicy?: NetworkPolicy;
}

export interface AtollEveSession extends Session {
  readonly id: string;
  setNetworkPolicy(policy: NetworkPolicy): Promise<void>;
}

export interface SeedFile {
  readonly path: string;
  readonly content: string | Uint8Array;
}

export function clientOf({ url, apiKey, tenant }: ClientOptions): Client {
  return new Client({ ...(url ? { url } : {}), ...(apiKey ? { apiKey } : {}), ...(tenant ? { tenant } : {}) });
}

/** Of the options, what a sandbox is made with. */
export function creation(options: AtollEveOptions): CreateOptions {
  const { template, env, secrets, resources, networkPolicy, profile, user } = options;
  return {
    ...(template === undefined ? {} : { template }),
    ...(env === undefined ? {} : { env }),
    ...(secrets === undefined ? {} : { secrets }),
    ...(resources === undefined ? {} : { resources }),
    ...(networkPolicy === undefined ? {} : { network: networkPolicy }),
    ...(profile === undefined ? {} : { profile }),
    ...(user === undefined ? {} : { user }),
  };
}

/**
 * Of the options, what a session's sandbox is made with: the rest is in the snapshot. What a bootstrap was allowed to reach
 * and how long it might take is not for the sessions, so that all of this is said again.
 */
export function sessionCreation(options: AtollEveOptions, tags: Readonly<Record<string, string>> = {}): CreateOptions {
  return {
    metadata: Object.fromEntries(Object.entries({ ...tags, framework: "eve" }).map(([name, value]) => [name, String(value).slice(0, 4096)])),
    idleTimeoutSeconds: options.idleTimeoutSeconds ?? IDLE_SECONDS,
    deleteAfterStoppedSeconds: options.deleteAfterStoppedSeconds ?? FORGOTTEN_SECONDS,
    maxLifetimeSeconds: 0,
    autoResume: true,
    network: options.networkPolicy ?? "deny-all",
  };
}

export function eveSession(box: Sandbox, id: string): AtollEveSession {
  return {
    ...makeSession(box, { env: { AI_AGENT: "eve" }, strictText: true }),
    id,
    async setNetworkPolicy(policy) {
      await box.network.set(policy);
    },
  };
}

/** In one request, whatever their number. `$HOME` is the sandbox's. */
export async function seed(box: Sandbox, files: readonly SeedFile[]): Promise<void> {
  if (files.length === 0) return;
  let home = "";
  if (files.some((file) => file.path.startsWith("$HOME")))
    home = (await box.exec(`printf '%s' "$HOME"`)).stdout || "/workspace";
  const expanded = files.map(({ path, content }) => ({ path: path.replace(/^\$HOME(?=\/)/, home), content }));
  await box.files.uploadDir("/", gzipSync(tarOf(expanded)));
}

/** During the preparation of a template, a command that fails with 1 ends it, as with eve's own sandboxes. */
export function preparing(session: AtollEveSession): AtollEveSession {
  return {
    ...session,
    async run(options) {
      const result = await session.run(options);
      if (result.exitCode === 1)
        throw new Error(`Sandbox bootstrap failed: ${options.command}\n${result.stderr || result.stdout}`.trim());
      return result;
    },
  };
}

export async function gone(what: Promise<unknown>): Promise<void> {
  try {
    await what;
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}
