/**
 * Atoll's sandboxes for eve. Up to eve 0.63 `atoll(options)` is the `backend` of a `defineSandbox`; from 0.64 on
 * `atoll.environment(options)` is its `environment`.
 */

import { AtollError } from "./errors.js";
import { BACKEND_NAME, atollBackend, type AtollBackend } from "./eve-backend.js";
import type { AtollEveOptions, AtollEveSession, UseOptions } from "./eve-common.js";
import { providerDefinition, type AtollEnvironmentOptions } from "./eve-provider.js";

export { SandboxTemplateNotProvisionedError } from "./eve-backend.js";
export type { AtollBackend, AtollBackendHandle } from "./eve-backend.js";
export type { AtollEveOptions, AtollEveSession, UseOptions } from "./eve-common.js";
export type { AtollEnvironmentOptions } from "./eve-provider.js";

// Eve's own function makes the environment, so that it is one of the eve that runs. Before 0.64 there is none.
// @ts-ignore: eve is the app's, in the app's version.
const eve = await import("eve/sandbox/provider").catch(() => undefined);
const provider = eve?.defineSandboxProvider(providerDefinition);

export interface Atoll {
  (options?: AtollEveOptions): AtollBackend;
  readonly provider: string;
  /** @ts-ignore: before 0.64 there is no such type, and no such use. */
  environment(options?: AtollEnvironmentOptions): import("eve/sandbox").SandboxEnvironment<UseOptions, AtollEveSession>;
}

export const atoll: Atoll = Object.assign((options: AtollEveOptions = {}) => atollBackend(options), {
  provider: BACKEND_NAME,
  environment(options?: AtollEnvironmentOptions) {
    if (provider) return provider.environment(options ?? {});
    throw new AtollError("atoll.environment() needs eve 0.64 or newer; for older ones use backend: atoll()", {
      code: "NOT_SUPPORTED",
    });
  },
});
