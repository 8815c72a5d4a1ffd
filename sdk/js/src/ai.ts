/** Atoll's sandboxes for the AI SDK: `experimental_sandbox` of its calls, and the sandbox provider of its harnesses. */

import {
  combinedPolicy,
  type HarnessNetworkPolicy,
  type HarnessRequestTransformation,
} from "./ai-network.js";
import { build, fingerprint } from "./blueprint.js";
import { Client } from "./client.js";
import { AtollError, NotFoundError, ValidationError } from "./errors.js";
import { FORGOTTEN_SECONDS, IDLE_SECONDS } from "./lifetimes.js";
import { forwardPort, type Forward } from "./forward.js";
import { absolutePath, WORKSPACE } from "./paths.js";
import { Sandbox } from "./sandbox.js";
import { makeSession, nullIfMissing, type PathOptions, type Session } from "./session.js";
import type { ClientOptions } from "./transport.js";
import type { CreateOptions, FileInfo } from "./types.js";

export type { HarnessNetworkPolicy, HarnessRequestTransformation } from "./ai-network.js";

export interface SandboxOptions extends ClientOptions, CreateOptions {
  /** What models are told of it; a sentence or two of its own where it is missing. */
  description?: string;
  abortSignal?: AbortSignal;
}

/** `Experimental_SandboxSession` of the AI SDK. */
export interface AiSandboxSession extends Omit<Session, "resolvePath" | "removePath"> {
  readonly description: string;
  stat(options: PathOptions): Promise<{ type: "file" | "directory" | "other"; size: number } | null>;
  listDirectory(options: PathOptions): Promise<{ name: string; type: "file" | "directory" | "symlink" | "other" }[] | null>;
  deleteFile(options: PathOptions): Promise<boolean>;
}

export interface OwnedSandboxSession extends AiSandboxSession {
  readonly id: string;
  /** All that Atoll can do with it. */
  readonly sandbox: Sandbox;
  stop(): Promise<void>;
  delete(): Promise<void>;
}

/** A session of a new sandbox, of the one with that `name`, or of one that is there already. */
export async function sandbox(from: SandboxOptions | Sandbox = {}): Promise<OwnedSandboxSession> {
  const box = from instanceof Sandbox ? from : await opened(from);
  const description = from instanceof Sandbox ? undefined : from.description;
  return {
    ...aiSession(box, description),
    id: box.id,
    sandbox: box,
    async stop() {
      await box.stop();
    },
    async delete() {
      await box.delete();
    },
  };
}

async function opened(options: SandboxOptions): Promise<Sandbox> {
  const { url, apiKey, tenant, description: _, abortSignal: signal, name, ...create } = options;
  const client = clientOf({ ...(url ? { url } : {}), ...(apiKey ? { apiKey } : {}), ...(tenant ? { tenant } : {}) });
  return name === undefined ? client.create({ ...create, signal }) : client.getOrCreate({ ...create, name, signal });
}

function clientOf(options: ClientOptions): Client {
  return new Client(options);
}

function aiSession(box: Sandbox, description?: string): AiSandboxSession {
  const { resolvePath: _resolve, removePath: _remove, ...session } = makeSession(box);
  return {
    ...session,
    description:
      description ??
      `A Linux sandbox (Debian, bash). Commands and relative paths start in ${WORKSPACE}. ` +
        (box.info?.network === "deny-all" ? "It has no network." : "What it may reach on the network is limited."),
    async stat({ path, abortSignal: signal }) {
      const entry = await nullIfMissing(box.files.stat(path, { signal }));
      if (entry === null) return null;
      return entry.isSymlink ? targetOf(box, path, signal) : { type: kindOf(entry), size: entry.size };
    },
    async listDirectory({ path, abortSignal: signal }) {
      try {
        const entries = await box.files.list(path, { all: true, signal });
        return entries.map((entry) => ({ name: entry.name, type: entry.isSymlink ? "symlink" : kindOf(entry) }));
      } catch (error) {
        if (error instanceof NotFoundError) return nullIfMissing(Promise.reject(error));
        throw error;
      }
    },
    async deleteFile({ path, abortSignal: signal }) {
      const entry = await nullIfMissing(box.files.stat(path, { signal }));
      if (entry === null) return false;
      if (entry.isDir) throw new ValidationError(`${absolutePath(path)} is a directory`, { code: "VALIDATION_ERROR", fields: ["path"] });
      return (await nullIfMissing(box.files.remove(path, { signal }).then(() => true))) ?? false;
    },
  };
}

function kindOf(entry: FileInfo): "file" | "directory" | "other" {
  return entry.isDir ? "directory" : entry.isFile ? "file" : "other";
}

/** Of a symbolic link, what it leads to. */
async function targetOf(box: Sandbox, path: string, signal?: AbortSignal): ReturnType<AiSandboxSession["stat"]> {
  const found = await box.exec(["stat", "-L", "-c", "%F\t%s", "--", absolutePath(path)], { signal });
  if (found.exitCode !== 0) return null;
  const [kind = "", size = "0"] = found.stdout.trim().split("\t");
  const type = kind === "directory" ? "directory" : kind.startsWith("regular") ? "file" : "other";
  return { type, size: Number(size) };
}

/** `HarnessV1NetworkSandboxSession` of @ai-sdk/harness. */
export interface HarnessSession extends AiSandboxSession {
  readonly id: string;
  readonly defaultWorkingDirectory: string;
  readonly ports: readonly number[];
  getPortEndpoint(options: { port: number; protocol?: "http" | "https" | "ws" }): Promise<{ url: string }>;
  getPortUrl(options: { port: number; protocol?: "http" | "https" | "ws" }): Promise<string>;
  stop(): Promise<void>;
  destroy(): Promise<void>;
  setNetworkPolicy(policy: HarnessNetworkPolicy): Promise<void>;
  setRequestTransformations(transformations: readonly HarnessRequestTransformation[]): Promise<void>;
  addRequestTransformations(transformations: readonly HarnessRequestTransformation[]): Promise<void>;
  setPorts(ports: readonly number[]): Promise<void>;
  restricted(): AiSandboxSession;
}

export interface HarnessCreateOptions {
  sessionId?: string;
  identity?: string;
  abortSignal?: AbortSignal;
  onFirstCreate?: (session: AiSandboxSession, options: { abortSignal?: AbortSignal }) => Promise<void>;
}

export interface HarnessProvider {
  readonly specificationVersion: "harness-sandbox-v1";
  readonly providerId: string;
  createSession(options?: HarnessCreateOptions): Promise<HarnessSession>;
  resumeSession(options: { sessionId: string; abortSignal?: AbortSignal }): Promise<HarnessSession>;
}

export interface HarnessOptions extends Omit<SandboxOptions, "name" | "abortSignal" | "network"> {
  networkPolicy?: HarnessNetworkPolicy;
  /** Ports of the sandbox that harnesses may connect to. */
  ports?: readonly number[];
}

/** The sandbox provider of a `HarnessAgent`. */
export function harness(options: HarnessOptions = {}): HarnessProvider {
  const { url, apiKey, tenant, description, networkPolicy, ports, ...given } = options;
  const client = clientOf({ ...(url ? { url } : {}), ...(apiKey ? { apiKey } : {}), ...(tenant ? { tenant } : {}) });
  const policy: HarnessNetworkPolicy = networkPolicy ?? { mode: "deny-all" };
  const create: CreateOptions = { ...given, network: combinedPolicy(policy, []) };
  // Said of every session: what the preparation of an identity was given is not for its sessions.
  const standing = {
    network: create.network!,
    maxLifetimeSeconds: given.maxLifetimeSeconds ?? 0,
    idleTimeoutSeconds: given.idleTimeoutSeconds ?? IDLE_SECONDS,
    deleteAfterStoppedSeconds: given.deleteAfterStoppedSeconds ?? FORGOTTEN_SECONDS,
  };
  const wrap = (box: Sandbox) => harnessSession(box, policy, ports ?? [], description);
  return {
    specificationVersion: "harness-sandbox-v1",
    providerId: "atoll",
    async createSession({ sessionId, identity, abortSignal, onFirstCreate } = {}) {
      const first = async (box: Sandbox) => onFirstCreate?.(aiSession(box, description), abortSignal ? { abortSignal } : {});
      const name = sessionId === undefined ? {} : { name: nameOf(sessionId) };
      if (identity === undefined) {
        const box = await found(client, name.name, abortSignal);
        if (box) return wrap(box);
        const fresh = await client.create({ ...create, ...standing, ...name, signal: abortSignal });
        await first(fresh);
        return wrap(fresh);
      }
      const tag = `harness-${fingerprint(identity, create)}`;
      await build(client, { tag, create, prepare: first });
      const made = { ...standing, fromSnapshot: tag, signal: abortSignal };
      return wrap(name.name ? await client.getOrCreate({ ...made, name: name.name }) : await client.create(made));
    },
    async resumeSession({ sessionId, abortSignal }) {
      const box = await found(client, nameOf(sessionId), abortSignal);
      if (box) return wrap(box);
      throw new NotFoundError(`there is no sandbox of session ${sessionId} any more`, { code: "NOT_FOUND" });
    },
  };
}

function nameOf(sessionId: string): string {
  return `ai-${fingerprint(sessionId)}`;
}

async function found(client: Client, name: string | undefined, signal?: AbortSignal): Promise<Sandbox | null> {
  return name === undefined ? null : client.attach(name, { signal });
}

function harnessSession(
  box: Sandbox,
  initial: HarnessNetworkPolicy,
  initialPorts: readonly number[],
  description?: string,
): HarnessSession {
  const session = aiSession(box, description);
  let policy = initial;
  let transformations: readonly HarnessRequestTransformation[] = [];
  let ports = initialPorts;
  const forwards = new Map<number, Promise<Forward>>();
  const apply = () => box.network.set(combinedPolicy(policy, transformations)).then(() => undefined);
  const closeForwards = async () => {
    const open = [...forwards.values()];
    forwards.clear();
    await Promise.all(open.map(async (forward) => (await forward).close()));
  };
  const endpoint = async (port: number, protocol = "http") => {
    if (!ports.includes(port)) throw new ValidationError(`port ${port} is not exposed; name it in ports`, { fields: ["ports"] });
    if (protocol === "https") throw new AtollError("ports are forwarded as they are: https is for what the port itself speaks");
    const forward = forwards.get(port) ?? forwardPort(box, port);
    forwards.set(port, forward);
    return { url: `${protocol}://127.0.0.1:${(await forward).port}` };
  };
  return {
    ...session,
    id: box.info?.name ?? box.id,
    defaultWorkingDirectory: WORKSPACE,
    get ports() {
      return ports;
    },
    getPortEndpoint: ({ port, protocol }) => endpoint(port, protocol),
    getPortUrl: async ({ port, protocol }) => (await endpoint(port, protocol)).url,
    async stop() {
      await closeForwards();
      await box.stop();
    },
    async destroy() {
      await closeForwards();
      await box.delete().catch((error) => {
        if (!(error instanceof NotFoundError)) throw error;
      });
    },
    setNetworkPolicy(next) {
      policy = next;
      return apply();
    },
    setRequestTransformations(next) {
      transformations = next;
      return apply();
    },
    addRequestTransformations(more) {
      transformations = [...transformations, ...more];
      return apply();
    },
    async setPorts(next) {
      ports = next;
      for (const [port, forward] of forwards) if (!next.includes(port)) {
        forwards.delete(port);
        await (await forward).close();
      }
    },
    restricted: () => session,
  };
}
