/** `atoll`, for whichever eve there is. */

import { AtollError } from "./errors.js";
import { BACKEND_NAME, atollBackend, type AtollBackend } from "./eve-backend.js";
import type { AtollEveOptions, AtollEveSession, UseOptions } from "./eve-common.js";
import { providerDefinition, type AtollEnvironmentOptions } from "./eve-provider.js";

export interface Atoll {
  /** The `backend` of a `defineSandbox`, up to eve 0.63. */
  (options?: AtollEveOptions): AtollBackend;
  readonly provider: string;
  /** The `environment` of an agent's sandbox, from eve 0.64 on. */
  /** @ts-ignore: before 0.64 there is no such type, and no such use. */
  environment(options?: AtollEnvironmentOptions): import("eve/sandbox").SandboxEnvironment<UseOptions, AtollEveSession>;
}

/** @internal Eve's own function makes the environment, so that it is one of the eve that runs. */
export function atollFor(defineSandboxProvider: ((definition: any) => any) | undefined): Atoll {
  const provider = defineSandboxProvider?.(providerDefinition);
  return Object.assign((options: AtollEveOptions = {}) => atollBackend(options), {
    provider: BACKEND_NAME,
    environment(options?: AtollEnvironmentOptions) {
      if (provider) return provider.environment(options ?? {});
      throw new AtollError(
        "atoll.environment() found no eve of 0.64 or newer beside this program. Up to 0.63 use backend: atoll(). " +
          "Where the app was built and then moved away from its node_modules, import atoll-sandbox/eve/provider.",
        { code: "NOT_SUPPORTED" },
      );
    },
  });
}
