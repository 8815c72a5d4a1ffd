/** eve's `SandboxBackend`, up to eve 0.63. One handle has what every version of it calls. */

import { build, fingerprint, isBuilt } from "./blueprint.js";
import type { Client } from "./client.js";
import { NotFoundError } from "./errors.js";
import {
  clientOf,
  creation,
  eveSession,
  gone,
  preparing,
  seed,
  sessionCreation,
  type AtollEveOptions,
  type AtollEveSession,
  type SeedFile,
  type UseOptions,
} from "./eve-common.js";
import type { Sandbox } from "./sandbox.js";

export const BACKEND_NAME = "atoll";

/** Its shape is what eve's runtime looks at: the class of the same name lives in another version of eve in each app. */
export class SandboxTemplateNotProvisionedError extends Error {
  override readonly name = "SandboxTemplateNotProvisionedError";
  readonly backendName = BACKEND_NAME;
  readonly providerName = BACKEND_NAME;

  constructor(readonly templateKey: string) {
    super(`Sandbox template "${templateKey}" is not provisioned on ${BACKEND_NAME}; eve prewarms it at build or start.`);
  }
}

export interface AtollSessionState {
  readonly backendName: string;
  readonly metadata: Record<string, unknown>;
  readonly sessionKey: string;
}

export interface AtollBackendHandle {
  readonly session: AtollEveSession;
  readonly useSessionFn: (options?: UseOptions) => Promise<AtollEveSession>;
  captureState(): Promise<AtollSessionState>;
  /** Eve 0.32 and newer. */
  stop(): Promise<void>;
  /** Eve 0.20 and newer. */
  shutdown(): Promise<void>;
  /** Eve 0.47 and newer. */
  delete(options?: { readonly abortSignal?: AbortSignal }): Promise<void>;
  /** Before eve 0.20. */
  dispose(): Promise<void>;
}

export interface AtollCreateInput {
  readonly templateKey: string | null;
  readonly sessionKey: string;
  readonly existingMetadata?: Record<string, unknown>;
  readonly tags?: Readonly<Record<string, string>>;
}

export interface AtollPrewarmInput {
  readonly templateKey: string;
  readonly bootstrap?: (input: { use: (options?: UseOptions) => Promise<AtollEveSession> }) => void | Promise<void>;
  readonly log?: (message: string) => void;
  readonly seedFiles: readonly SeedFile[];
}

export interface AtollBackend {
  readonly name: string;
  prewarm(input: AtollPrewarmInput): Promise<{ reused: boolean }>;
  create(input: AtollCreateInput): Promise<AtollBackendHandle>;
}

export function atollBackend(options: AtollEveOptions = {}): AtollBackend {
  const client = clientOf(options);
  const made = creation(options);
  // eve's key knows nothing of these options; what is made with others is another template.
  const tagOf = (templateKey: string) => `eve-template-${fingerprint(templateKey, made)}`;
  return {
    name: BACKEND_NAME,
    async prewarm({ templateKey, bootstrap, log, seedFiles }) {
      log?.(`checking template ${templateKey}`);
      const reused = await build(client, {
        tag: tagOf(templateKey),
        create: made,
        async prepare(box) {
          log?.(`preparing template ${templateKey}`);
          await seed(box, seedFiles);
          const session = preparing(eveSession(box, templateKey));
          await bootstrap?.({ use: useOf(box, session) });
        },
      });
      return { reused };
    },
    async create({ templateKey, sessionKey, existingMetadata, tags }) {
      const known = existingMetadata?.sandboxId;
      const name = `eve-${fingerprint(sessionKey)}`;
      const box =
        (typeof known === "string" ? await client.attach(known) : null) ??
        (await open(client, name, templateKey, options, tagOf, tags));
      return handleOf(box, sessionKey);
    },
  };
}

async function open(
  client: Client,
  name: string,
  templateKey: string | null,
  options: AtollEveOptions,
  tagOf: (templateKey: string) => string,
  tags: AtollCreateInput["tags"],
): Promise<Sandbox> {
  const standing = { ...sessionCreation(options, tags), name };
  if (templateKey === null) return client.getOrCreate({ ...creation(options), ...standing });
  const tag = tagOf(templateKey);
  try {
    return await client.getOrCreate({ ...standing, fromSnapshot: tag });
  } catch (error) {
    if (error instanceof NotFoundError && !(await isBuilt(client, tag))) throw new SandboxTemplateNotProvisionedError(templateKey);
    throw error;
  }
}

function handleOf(box: Sandbox, sessionKey: string): AtollBackendHandle {
  const session = eveSession(box, sessionKey);
  return {
    session,
    useSessionFn: useOf(box, session),
    async captureState() {
      return { backendName: BACKEND_NAME, metadata: { sandboxId: box.id }, sessionKey };
    },
    async stop() {
      await box.stop();
    },
    // Another process may be using it already, and jobs may go on: one that nobody uses is stopped by the server.
    async shutdown() {},
    async delete(options) {
      await gone(box.delete({ signal: options?.abortSignal }));
    },
    async dispose() {},
  };
}

function useOf(box: Sandbox, session: AtollEveSession): (options?: UseOptions) => Promise<AtollEveSession> {
  return async (options) => {
    if (options?.networkPolicy !== undefined) await box.network.set(options.networkPolicy);
    return session;
  };
}
