export { Client, type Secrets, type Snapshots, type Templates } from "./client.js";
export * from "./errors.js";
export type { Files } from "./files.js";
export type { Network, NetworkVerdict } from "./network.js";
export { Process, type KillOptions } from "./process.js";
export { Sandbox, type Command, type CommandOptions, type ExecOptions, type SpawnOptions } from "./sandbox.js";
export type { ClientOptions, Content } from "./transport.js";
export type * from "./types.js";
