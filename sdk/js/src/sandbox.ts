/** One sandbox. */

import { CodeContexts, runCode, type CodeExecutionOptions, type CodeExecutionResult, type CodeLanguage } from "./code.js";
import { Files } from "./files.js";
import { Network } from "./network.js";
import { given, runtimePath, sandboxPath } from "./paths.js";
import { Ports } from "./ports.js";
import { Process } from "./process.js";
import { eventsOf } from "./sse.js";
import { piecesOf, type Transport } from "./transport.js";
import type {
  Abortable,
  AtollEvent,
  Change,
  Checkpoint,
  CommandResult,
  ForkOptions,
  ProcessInfo,
  SandboxInfo,
  SandboxUsage,
  Snapshot,
  SnapshotOptions,
  Status,
  Token,
  UpdateOptions,
} from "./types.js";

/** A string is for a shell (`bash -lc`); a list is a program and its arguments, as they are. */
export type Command = string | readonly [string, ...string[]];

export interface CommandOptions extends Abortable {
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  user?: string;
  /** Then all that it has started is killed, and the exit code is 124. */
  timeoutMs?: number;
}

export interface ExecOptions extends CommandOptions {
  /** Called with each piece as it comes. */
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

export interface SpawnOptions extends CommandOptions {
  /** Keep its standard input open, for `write` and `closeInput`. */
  stdin?: boolean;
  pty?: boolean;
  cols?: number;
  rows?: number;
}

const ANSWER_MARGIN_MS = 30_000;

export class Sandbox {
  readonly files: Files;
  readonly network: Network;
  readonly ports: Ports;
  readonly codeContexts: CodeContexts;

  /** @internal */
  constructor(
    private readonly transport: Transport,
    /** Its id, or its name where it was found by it. */
    readonly id: string,
    /** As it was when this object was made, or at the last call that answered with it. */
    public info: SandboxInfo | undefined,
  ) {
    this.files = new Files(transport, id);
    this.network = new Network(transport, id);
    this.ports = new Ports(transport, id);
    this.codeContexts = new CodeContexts(transport, id);
  }

  // Life.

  async refresh(options: Abortable = {}): Promise<SandboxInfo> {
    const path = sandboxPath(this.id);
    return (this.info = await this.transport.json<SandboxInfo>({ method: "GET", path, ...options }));
  }

  async update(changes: UpdateOptions, options: Abortable = {}): Promise<SandboxInfo> {
    const path = sandboxPath(this.id);
    return (this.info = await this.transport.json<SandboxInfo>({ method: "PATCH", path, json: changes, ...options }));
  }

  async delete(options: Abortable = {}): Promise<void> {
    await this.transport.json({ method: "DELETE", path: sandboxPath(this.id), ...options });
  }

  /** Its processes end, its files stay. */
  stop(options: Abortable = {}): Promise<SandboxInfo> {
    return this.turn("stop", undefined, options);
  }

  /** After `stop`. */
  start(options: Abortable = {}): Promise<SandboxInfo> {
    return this.turn("resume", undefined, options);
  }

  /** Freezes its processes in memory or, with `disk`, keeps them on the disk. */
  pause(options: Abortable & { disk?: boolean } = {}): Promise<SandboxInfo> {
    return this.turn("pause", options.disk === undefined ? undefined : { disk: options.disk }, options);
  }

  /** After `pause`. */
  resume(options: Abortable = {}): Promise<SandboxInfo> {
    return this.turn("resume", undefined, options);
  }

  /** Until it has the status; TimeoutError where it takes longer. */
  async wait(status: Status = "running", options: Abortable & { timeoutMs?: number } = {}): Promise<SandboxInfo> {
    const { signal, timeoutMs = 30_000 } = options;
    return (this.info = await this.transport.json<SandboxInfo>({
      method: "GET",
      path: sandboxPath(this.id, "wait"),
      query: { status, timeoutMs },
      timeoutMs: timeoutMs + ANSWER_MARGIN_MS,
      signal,
    }));
  }

  usage(options: Abortable = {}): Promise<SandboxUsage> {
    return this.transport.json({ method: "GET", path: sandboxPath(this.id, "usage"), ...options });
  }

  /** What happens to it, from the first event that is still known or from the one after `after`. */
  async *events(options: Abortable & { after?: string; follow?: boolean } = {}): AsyncGenerator<AtollEvent> {
    yield* eventStream(this.transport, sandboxPath(this.id, "events"), options);
  }

  /** A short-lived token for this sandbox, to be given to a browser. */
  createToken(
    scope: Token["scope"] = "project",
    options: Abortable & { sessionId?: string; ttlMinutes?: number } = {},
  ): Promise<Token> {
    const { signal, ...rest } = options;
    const path = sandboxPath(this.id, "tokens");
    return this.transport.json({ method: "POST", path, json: given({ scope, ...rest }), signal });
  }

  // States.

  snapshot(options: SnapshotOptions & Abortable = {}): Promise<Snapshot> {
    const { signal, ...json } = options;
    return this.transport.json({ method: "POST", path: sandboxPath(this.id, "snapshots"), json, signal });
  }

  async snapshots(options: Abortable = {}): Promise<Snapshot[]> {
    const path = sandboxPath(this.id, "snapshots");
    return (await this.transport.json<{ snapshots: Snapshot[] }>({ method: "GET", path, ...options })).snapshots;
  }

  /** To a snapshot's or a checkpoint's files; from a checkpoint, what ran then goes on. */
  restore(to: { snapshotId: string } | { checkpointId: string } | { to: number }, options: Abortable = {}): Promise<SandboxInfo> {
    return this.turn("restore", to, options);
  }

  /** Copies with its files as they are now; all of them or none. */
  async fork(options: ForkOptions & Abortable = {}): Promise<Sandbox[]> {
    const { signal, ...json } = options;
    const path = sandboxPath(this.id, "fork");
    const answer = await this.transport.json<{ sandboxes: SandboxInfo[] }>({ method: "POST", path, json, signal, timeoutMs: 0 });
    return answer.sandboxes.map((info) => new Sandbox(this.transport, info.id, info));
  }

  /** Its files and its processes. */
  checkpoint(options: SnapshotOptions & { leaveRunning?: boolean } & Abortable = {}): Promise<Checkpoint> {
    const { signal, ...json } = options;
    return this.transport.json({ method: "POST", path: sandboxPath(this.id, "checkpoints"), json, signal, timeoutMs: 0 });
  }

  async checkpoints(options: Abortable = {}): Promise<Checkpoint[]> {
    const path = sandboxPath(this.id, "checkpoints");
    return (await this.transport.json<{ checkpoints: Checkpoint[] }>({ method: "GET", path, ...options })).checkpoints;
  }

  /** What changed from a snapshot to another, or to what the sandbox is now. */
  async diff(from: string, options: Abortable & { to?: string; text?: boolean } = {}): Promise<Change[]> {
    const { signal, to, text } = options;
    const query = { from, to, text };
    const path = sandboxPath(this.id, "diff");
    return (await this.transport.json<{ changes: Change[] }>({ method: "GET", path, query, signal })).changes;
  }

  // Commands.

  /**
   * Runs a command to its end in one request; any exit code is a success. Of more than some megabytes of output, the
   * oldest are lost, and the result says how many. With a signal or a callback it is read as it is written, and an abort
   * kills all that the command has started.
   */
  async exec(command: Command, options: ExecOptions = {}): Promise<CommandResult> {
    if (options.signal || options.onStdout || options.onStderr) return this.follow(command, options);
    const limit = options.timeoutMs;
    const { result } = await this.transport.json<{ result: WireResult }>({
      method: "POST",
      path: runtimePath(this.id, "terminals/commands"),
      json: commandBody(command, options),
      timeoutMs: limit ? limit + ANSWER_MARGIN_MS : 0,
    });
    const { duration, ...rest } = result;
    return { ...rest, durationMs: duration };
  }

  /**
   * Runs code in the kernel of its session and language, which keeps variables between calls. Errors of the code are in
   * the result; an abort interrupts it.
   */
  async runCode(
    language: CodeLanguage,
    source: string,
    options: CodeExecutionOptions = {},
  ): Promise<CodeExecutionResult> {
    return runCode(this.transport, this.id, language, source, options);
  }

  /** Starts a command that goes on by itself, whatever becomes of this client. The signal is for the start only. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<Process> {
    const { stdin, pty, cols, rows, signal } = options;
    const json = { ...commandBody(command, options), ...given({ stdin, pty, cols, rows }) };
    const path = runtimePath(this.id, "process/spawn");
    const { data } = await this.transport.json<{ data: ProcessInfo }>({ method: "POST", path, json, signal });
    return new Process(this.transport, this.id, data);
  }

  async processes(options: Abortable = {}): Promise<Process[]> {
    const path = runtimePath(this.id, "process");
    const { data } = await this.transport.json<{ data: ProcessInfo[] }>({ method: "GET", path, ...options });
    return data.map((info) => new Process(this.transport, this.id, info));
  }

  async process(pid: number, options: Abortable = {}): Promise<Process> {
    const path = runtimePath(this.id, "process", String(pid));
    const { data } = await this.transport.json<{ data: ProcessInfo }>({ method: "GET", path, ...options });
    return new Process(this.transport, this.id, data);
  }

  private async follow(command: Command, options: ExecOptions): Promise<CommandResult> {
    const { signal, onStdout, onStderr } = options;
    signal?.throwIfAborted();
    const begun = Date.now();
    // The start is not given up: a process whose number nobody knows could not be killed.
    const process = await this.spawn(command, { ...options, signal: undefined });
    try {
      const [stdout, stderr, end] = await Promise.all([
        collect(process.output("stdout", { signal }), onStdout),
        collect(process.output("stderr", { signal }), onStderr),
        process.wait({ signal }),
      ]);
      const { exitCode, exitSignal, timedOut, pid } = end;
      return {
        exitCode,
        exitSignal,
        timedOut,
        pid,
        stdout: stdout.text,
        stderr: stderr.text,
        stdoutLost: Math.max(0, end.stdoutBytes - stdout.bytes),
        stderrLost: Math.max(0, end.stderrBytes - stderr.bytes),
        durationMs: Date.now() - begun,
      };
    } catch (error) {
      await process.kill().catch(() => undefined); // What is thrown is why.
      throw error;
    }
  }

  private async turn(what: string, json: unknown, { signal }: Abortable): Promise<SandboxInfo> {
    const path = sandboxPath(this.id, what);
    const body = json === undefined ? {} : { json };
    return (this.info = await this.transport.json<SandboxInfo>({ method: "POST", path, signal, timeoutMs: 0, ...body }));
  }
}

interface WireResult extends Omit<CommandResult, "durationMs"> {
  duration: number;
}

function commandBody(command: Command, options: CommandOptions): Record<string, unknown> {
  const { cwd, env, user, timeoutMs } = options;
  const what = typeof command === "string" ? { command } : { executable: command[0], args: command.slice(1) };
  return { ...what, ...given({ cwd, env, user, timeoutMs }) };
}

/** @internal All of a stream as text; bytes that are not UTF-8 are replaced. */
export async function collect(
  stream: ReadableStream<Uint8Array>,
  onText?: (text: string) => void,
): Promise<{ text: string; bytes: number }> {
  const decoder = new TextDecoder();
  const collected = { text: "", bytes: 0 };
  const take = (piece: string) => {
    if (piece === "") return;
    collected.text += piece;
    onText?.(piece);
  };
  for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) {
    collected.bytes += piece.length;
    take(decoder.decode(piece, { stream: true }));
  }
  take(decoder.decode());
  return collected;
}

/** @internal */
export async function* eventStream(
  transport: Transport,
  path: string,
  options: Abortable & { after?: string; follow?: boolean },
): AsyncGenerator<AtollEvent> {
  const { signal, after, follow = true } = options;
  const headers: Record<string, string> = after === undefined ? {} : { "Last-Event-ID": after };
  const answer = await transport.open({ method: "GET", path, query: { follow }, headers, signal });
  for await (const event of eventsOf(piecesOf(answer, signal))) if (event.type !== "heartbeat") yield event;
}
