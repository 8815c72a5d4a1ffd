/**
 * Atoll's sandboxes for eve. Up to eve 0.63 `atoll(options)` is the `backend` of a `defineSandbox`; from 0.64 on
 * `atoll.environment(options)` is its `environment`.
 */

import { atollFor, type Atoll } from "./eve-atoll.js";

export type { Atoll } from "./eve-atoll.js";
export { SandboxTemplateNotProvisionedError } from "./eve-backend.js";
export type { AtollBackend, AtollBackendHandle } from "./eve-backend.js";
export type { AtollEveOptions, AtollEveSession, UseOptions } from "./eve-common.js";
export type { AtollEnvironmentOptions } from "./eve-provider.js";

// Before 0.64 there is no such module, and eve's bundler ends a build at an import that it cannot resolve: so it sees none.
const PROVIDER_MODULE = ["eve", "sandbox", "provider"].join("/");

async function findDefinition(): Promise<((definition: any) => any) | undefined> {
  try {
    return (await import(PROVIDER_MODULE)).defineSandboxProvider;
  } catch {
    return undefined; // Who needs it is told by environment().
  }
}

export const atoll: Atoll = atollFor(await findDefinition());
