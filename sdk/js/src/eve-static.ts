/** The same for eve 0.64 and newer, with an import that bundlers follow: the app needs no node_modules where it runs. */

// @ts-ignore: eve is the app's, in the app's version.
import { defineSandboxProvider } from "eve/sandbox/provider";
import { atollFor, type Atoll } from "./eve-atoll.js";

export type { Atoll } from "./eve-atoll.js";
export type { AtollEveOptions, AtollEveSession, UseOptions } from "./eve-common.js";
export type { AtollEnvironmentOptions } from "./eve-provider.js";

export const atoll: Atoll = atollFor(defineSandboxProvider);
