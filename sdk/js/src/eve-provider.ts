/** What eve 0.64 and newer ask of a sandbox provider. */

import { build, fingerprint, isBuilt } from "./blueprint.js";
import { AtollError, NotFoundError } from "./errors.js";
import { BACKEND_NAME, SandboxTemplateNotProvisionedError } from "./eve-backend.js";
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

export interface AtollEnvironmentOptions extends AtollEveOptions {
  /** Run once, with the workspace's files and skills in place; every session starts from what it leaves. */
  prepare?: (sandbox: AtollEveSession) => void | Promise<void>;
}

export type AtollArtifact = { readonly snapshot: string };
export type AtollState = { readonly sandboxId: string; readonly version: 1 };

interface ResourceTree {
  readonly files: readonly { readonly content: string | Uint8Array; readonly relativePath: string }[];
  readonly key: string;
  readonly targetPath: string;
}

interface PrepareContext {
  readonly log?: (message: string) => void;
  readonly resources: { readonly skills?: ResourceTree; readonly workspace?: ResourceTree };
  readonly sourceRevision: string;
}

interface SessionContext {
  readonly session: { readonly id: string };
}

export interface AtollProviderHandle {
  readonly sandbox: AtollEveSession;
  onSandboxStop(): Promise<void>;
  onSandboxDelete(options?: { readonly abortSignal?: AbortSignal }): Promise<void>;
  onRuntimeShutdown(): Promise<void>;
}

export const providerDefinition = {
  name: BACKEND_NAME,
  stateProtocolVersion: 1,
  environment: (options?: Readonly<AtollEnvironmentOptions>) => implementation(options ?? {}),
};

function implementation(options: Readonly<AtollEnvironmentOptions>) {
  const client = clientOf(options);
  const made = creation(options);
  return {
    async prepare(context: PrepareContext): Promise<AtollArtifact> {
      const { workspace, skills } = context.resources;
      const parts = [context.sourceRevision, workspace?.key, skills?.key, made, options.prepare?.toString()];
      const snapshot = `eve-prepared-${fingerprint(...parts)}`;
      const reused = await build(client, {
        tag: snapshot,
        create: made,
        async prepare(box) {
          await seed(box, [...targetFiles(workspace), ...targetFiles(skills)]);
          await options.prepare?.(preparing(eveSession(box, snapshot)));
        },
      });
      context.log?.(`${reused ? "reusing" : "captured"} template ${snapshot}`);
      return { snapshot };
    },

    async start(context: SessionContext, open: Readonly<UseOptions> | undefined, artifact: Readonly<AtollArtifact>) {
      const { id } = context.session;
      const name = `eve-${fingerprint(id, artifact.snapshot, open)}`;
      const network = open?.networkPolicy;
      const create = { ...sessionCreation(options, { sessionId: id }), name, fromSnapshot: artifact.snapshot };
      try {
        const box = await client.getOrCreate(network === undefined ? create : { ...create, network });
        return { handle: handleOf(box), state: { sandboxId: box.id, version: 1 as const } };
      } catch (error) {
        if (error instanceof NotFoundError && !(await isBuilt(client, artifact.snapshot)))
          throw new SandboxTemplateNotProvisionedError(artifact.snapshot);
        throw error;
      }
    },

    async resume(_context: SessionContext, _artifact: Readonly<AtollArtifact>, state: Readonly<AtollState>) {
      const box = await client.attach(state.sandboxId);
      if (box) return handleOf(box);
      throw new AtollError(`sandbox ${state.sandboxId} is gone; delete() or reset the session to begin with a new one`, {
        code: "NOT_FOUND",
      });
    },

    async onSessionEnd(_context: SessionContext, _artifact: Readonly<AtollArtifact>, state: Readonly<AtollState>) {
      await gone(client.delete(state.sandboxId));
    },
  };
}

function handleOf(box: Sandbox): AtollProviderHandle {
  return {
    sandbox: eveSession(box, box.id),
    async onSandboxStop() {
      await box.stop();
    },
    async onSandboxDelete(options) {
      await gone(box.delete({ signal: options?.abortSignal }));
    },
    // Another process may be using it already, and jobs may go on: one that nobody uses is stopped by the server.
    async onRuntimeShutdown() {},
  };
}

function targetFiles(tree: ResourceTree | undefined): SeedFile[] {
  return (tree?.files ?? []).map(({ content, relativePath }) => ({ content, path: `${tree!.targetPath}/${relativePath}` }));
}
