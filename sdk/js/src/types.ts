/** What the server is told and what it answers, as in docs/api/openapi.yaml. */

export type Status = "provisioning" | "running" | "paused" | "stopped" | "failed";

export interface Resources {
  cpuCores?: number;
  memoryMB?: number;
  diskGB?: number;
  pids?: number;
}

/** One of the three. A `regex` is RE2, and matches anywhere unless it is anchored. */
export interface Matcher {
  exact?: string;
  startsWith?: string;
  regex?: string;
}

export interface RequestMatch {
  path?: Matcher;
  method?: readonly string[];
  queryString?: readonly { key?: Matcher; value?: Matcher }[];
  headers?: readonly { key?: Matcher; value?: Matcher }[];
}

/** Of `transform`, `forwardURL` and `response` exactly one. */
export interface NetworkRule {
  match?: RequestMatch;
  /** A header that is null is removed. */
  transform?: readonly { headers?: Readonly<Record<string, string | null>> }[];
  forwardURL?: string;
  response?: {
    statusCode: number;
    headers?: Readonly<Record<string, string>>;
    body?: string;
    contentType?: string;
  };
}

export interface NetworkLimits {
  connections?: number;
  requestsPerSecond?: number;
  bytesPerSecond?: number;
}

export type DomainRules =
  | readonly NetworkRule[]
  | { rules?: readonly NetworkRule[]; ports?: readonly number[]; limits?: NetworkLimits };

/** What a sandbox may reach. Values of headers may hold `${NAME}`, a secret that never enters the sandbox. */
export type NetworkPolicy =
  | "deny-all"
  | "allow-all"
  | {
      allow?: readonly string[] | Readonly<Record<string, DomainRules>>;
      subnets?: { allow?: readonly string[]; deny?: readonly string[] };
      limits?: NetworkLimits;
    };

export interface CreateOptions {
  /** Unique; lower-case letters, digits and hyphens. */
  name?: string;
  /** A template's name; `base` where it is missing. */
  template?: string;
  /** A snapshot's id or tag, instead of a template. */
  fromSnapshot?: string;
  env?: Readonly<Record<string, string>>;
  /** Names of secrets that become variables of every command. */
  secrets?: "all" | readonly string[];
  resources?: Resources;
  network?: NetworkPolicy;
  profile?: "dev" | "strict";
  user?: string;
  metadata?: Readonly<Record<string, string>>;
  maxLifetimeSeconds?: number;
  idleTimeoutSeconds?: number;
  deleteAfterStoppedSeconds?: number;
  autoResume?: boolean;
  ephemeral?: boolean;
  history?: boolean;
  git?: { url: string; ref?: string; depth?: number; sparse?: readonly string[]; auth?: { token: string } };
  /** The same key gives the same sandbox. */
  idempotencyKey?: string;
  pool?: boolean;
}

export interface SandboxInfo {
  id: string;
  name: string | null;
  status: Status;
  /** Why it ended. */
  reason: string;
  cause: string;
  error?: string;
  tenant: string;
  template: string;
  profile: "dev" | "strict";
  user: string;
  envNames: string[];
  resources: Required<Resources>;
  metadata: Record<string, string>;
  ephemeral: boolean;
  history: boolean;
  maxLifetimeSeconds: number;
  idleTimeoutSeconds: number;
  deleteAfterStoppedSeconds: number;
  autoResume: boolean;
  secrets: string[];
  network: "deny-all" | "allow-all" | "rules";
  createdAt: string;
  startedAt: string;
  lastActivityAt: string;
  expiresAt?: string;
  endedAt?: string;
  isolation: { driver: string; boundary: string; degraded: string[] };
  timings: { source: "pool" | "cold" | "reattached"; totalMicroseconds: number };
  connection?: { runtimeUrl: string; sidecarUrl: string; authToken?: string; authTokenExpiresAt?: string };
}

export interface UpdateOptions {
  resources?: Resources;
  maxLifetimeSeconds?: number;
  idleTimeoutSeconds?: number;
  deleteAfterStoppedSeconds?: number;
  metadata?: Readonly<Record<string, string>>;
}

export interface ForkOptions {
  count?: number;
  name?: string;
  env?: Readonly<Record<string, string>>;
  resources?: Resources;
  metadata?: Readonly<Record<string, string>>;
  checkpointId?: string;
  /** With what runs in it now. */
  memory?: boolean;
}

export interface CommandResult {
  exitCode: number;
  exitSignal: number;
  stdout: string;
  stderr: string;
  /** Bytes that were not kept. */
  stdoutLost: number;
  stderrLost: number;
  timedOut: boolean;
  durationMs: number;
  pid: number;
}

export interface ProcessInfo {
  pid: number;
  command: string;
  cwd: string;
  user: string;
  running: boolean;
  pty: boolean;
  /** -1 while it runs, 128+n when ended by signal n, 124 when its time was up. */
  exitCode: number;
  exitSignal: number;
  timedOut: boolean;
  startedAt: string;
  exitedAt?: string;
  cpuMicroseconds: number;
  stdoutBytes: number;
  stderrBytes: number;
}

export type LogEvent =
  | { type: "stdout" | "stderr"; data: string; offset: number; bytes: number; timestamp: string }
  | { type: "lost"; stream: "stdout" | "stderr"; offset: number; bytes: number }
  | { type: "exit"; process: ProcessInfo };

export interface FileInfo {
  name: string;
  path: string;
  size: number;
  isDir: boolean;
  isFile: boolean;
  isSymlink: boolean;
  linkTarget?: string;
  /** Octal, such as "0644". */
  permissions: string;
  owner: string;
  group: string;
  uid: number;
  gid: number;
  modTime: string;
  accessTime: string;
}

export interface FileEvent {
  type: "created" | "modified" | "removed" | "renamed" | "attributes" | "overflow";
  path: string;
  isDir: boolean;
}

export interface Snapshot {
  snapshotId: string;
  sandboxId: string;
  sandboxName: string | null;
  template: string;
  parent: string | null;
  message: string;
  tags: string[];
  createdAt: string;
  expiresAt?: string;
  sizeBytes: number;
  frozenMicroseconds: number;
  totalMicroseconds: number;
}

export interface SnapshotOptions {
  message?: string;
  tags?: readonly string[];
  keepSeconds?: number;
}

export interface Checkpoint {
  checkpointId: string;
  sandboxId: string;
  sandboxName: string | null;
  message: string;
  tags: string[];
  createdAt: string;
  expiresAt?: string;
  sizeBytes: number;
}

export interface Template {
  name: string;
  version: number;
  createdAt: string;
  digest: string;
  layers: number;
  sizeBytes: number;
  inUse: number;
  tags: string[];
  source?: string;
  defaults: { env: Record<string, string>; workdir?: string; user?: string; resources?: Resources };
}

export interface TemplateOptions {
  /** The template to build on. */
  from?: string;
  /** What is put there before the script runs: a file's text, or a directory as a tar archive in base64. */
  seed?: readonly { path: string; content?: string; archive?: string }[];
  /** A script for /bin/sh, run once as root. */
  bootstrap?: string;
  timeoutSeconds?: number;
  /** Instead of from, seed and bootstrap. */
  snapshot?: string;
  env?: Readonly<Record<string, string>>;
  workdir?: string;
  user?: string;
  resources?: Resources;
}

export interface NetworkEntry {
  seq: number;
  at: string;
  decision: "allow" | "deny";
  protocol: "dns" | "tcp" | "tls" | "http" | "https";
  host: string;
  address: string;
  port: number;
  rule: string;
  reason: string;
  request?: string;
  bytesSent: number;
  bytesReceived: number;
  durationMs: number;
}

export interface Secret {
  name: string;
  createdAt: string;
  updatedAt: string;
}

export interface Token {
  token: string;
  expiresAt: string;
  scope: "session" | "project" | "read-only";
  sidecarProxyUrl?: string;
}

/** Something that happened to a sandbox. `id` is where to go on from. */
export interface AtollEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

export interface System {
  version: string;
  backend: string;
  degraded: string[];
  sandboxes: number;
  pool: Record<string, number>;
}

export interface SandboxUsage {
  sandboxId: string;
  cpuSeconds: number;
  runningSeconds: number;
  memoryGBSeconds: number;
  memoryBytes?: number;
  memoryPeakBytes?: number;
  cpuMicroseconds?: number;
  processes?: number;
  oomKills?: number;
}

export interface Change {
  path: string;
  kind: "added" | "changed" | "removed";
  type: "file" | "directory" | "symlink" | "other";
  sizeBefore: number;
  sizeAfter: number;
  text?: string;
}

/** Every call can be given up. */
export interface Abortable {
  signal?: AbortSignal | undefined;
}
