/**
 * What eve and the AI SDK both call a sandbox session. A plain object whose methods know nothing of `this`, because both
 * frameworks spread it and call its methods detached.
 */

import { AtollError, NotFoundError, ValidationError } from "./errors.js";
import { absolutePath } from "./paths.js";
import type { Process } from "./process.js";
import type { Sandbox } from "./sandbox.js";
import { decodeText, encodeText, linesOf, type LineRange } from "./text.js";

export interface PathOptions {
  path: string;
  abortSignal?: AbortSignal;
}

export interface RunOptions {
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
  abortSignal?: AbortSignal;
}

export interface SessionProcess {
  readonly pid: number;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

export interface WritableSessionProcess extends SessionProcess {
  readonly stdin: WritableStream<Uint8Array>;
}

export interface Spawn {
  (options: RunOptions & { stdin: true }): Promise<WritableSessionProcess>;
  (options: RunOptions & { stdin?: false }): Promise<SessionProcess>;
  (options: RunOptions & { stdin?: boolean }): Promise<SessionProcess | WritableSessionProcess>;
}

export interface Session {
  run(options: RunOptions): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  spawn: Spawn;
  readFile(options: PathOptions): Promise<ReadableStream<Uint8Array> | null>;
  readBinaryFile(options: PathOptions): Promise<Uint8Array | null>;
  readTextFile(options: PathOptions & LineRange & { encoding?: string }): Promise<string | null>;
  writeFile(options: PathOptions & { content: ReadableStream<Uint8Array> }): Promise<void>;
  writeBinaryFile(options: PathOptions & { content: Uint8Array }): Promise<void>;
  writeTextFile(options: PathOptions & { content: string; encoding?: string }): Promise<void>;
  resolvePath(path: string): string;
  removePath(options: PathOptions & { force?: boolean; recursive?: boolean }): Promise<void>;
}

export interface SessionSettings {
  /** For every command, under its own. */
  env?: Readonly<Record<string, string>>;
  /** Whether text that is not UTF-8 is an error (eve) or is replaced (AI SDK). */
  strictText?: boolean;
}

export function makeSession(box: Sandbox, settings: SessionSettings = {}): Session {
  const command = ({ workingDirectory, env }: RunOptions) => ({
    cwd: absolutePath(workingDirectory ?? ""),
    env: { ...settings.env, ...env },
  });
  const upload = (path: string, content: ReadableStream<Uint8Array> | Uint8Array, signal?: AbortSignal) =>
    box.files.write(path, content, { signal }).then(() => undefined);
  const readBinaryFile = ({ path, abortSignal }: PathOptions): Promise<Uint8Array | null> =>
    nullIfMissing(box.files.read(path, { signal: abortSignal }));
  return {
    async run(options) {
      // A signal, even one that never comes, makes it a followed process: who follows holds a fast writer back.
      const signal = options.abortSignal ?? new AbortController().signal;
      const { exitCode, stdout, stderr, stdoutLost, stderrLost } = await box.exec(options.command, { ...command(options), signal });
      const lost = stdoutLost + stderrLost;
      const note = lost > 0 ? `atoll: the first ${lost} bytes of output came faster than they could be read\n` : "";
      return { exitCode, stdout, stderr: note + stderr };
    },
    spawn: (async (options: RunOptions & { stdin?: boolean }) => {
      const { abortSignal, stdin } = options;
      abortSignal?.throwIfAborted();
      // The start is not given up: a process whose number nobody knows could not be killed.
      const process = await box.spawn(options.command, { ...command(options), stdin: stdin ?? false });
      return processHandle(process, abortSignal, stdin ?? false);
    }) as Spawn,
    readFile: ({ path, abortSignal }) => nullIfMissing(box.files.readStream(path, { signal: abortSignal })),
    readBinaryFile,
    async readTextFile(options) {
      const { encoding, startLine, endLine } = options;
      const bytes = await readBinaryFile(options);
      return bytes === null
        ? null
        : linesOf(decodeText(bytes, encoding, settings.strictText ?? false), { startLine, endLine });
    },
    writeFile: ({ path, content, abortSignal }) => upload(path, content, abortSignal),
    writeBinaryFile: ({ path, content, abortSignal }) => upload(path, content, abortSignal),
    writeTextFile: ({ path, content, encoding, abortSignal }) => upload(path, encodeText(content, encoding), abortSignal),
    resolvePath: absolutePath,
    async removePath({ path, force = false, recursive = false, abortSignal: signal }) {
      if (!recursive) await refuseDirectory(box, path, force, signal);
      await box.files.remove(path, { force, recursive, signal });
    },
  };
}

function processHandle(
  process: Process,
  signal: AbortSignal | undefined,
  stdin: boolean,
): SessionProcess | WritableSessionProcess {
  let killed: Promise<void> | undefined;
  const kill = () => (killed ??= process.kill());
  const abort = () => void kill().catch(() => undefined); // wait() tells what matters: that it was aborted.
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true });
  let end: Promise<{ exitCode: number }> | undefined;
  const waitForEnd = async () => {
    try {
      const { exitCode } = await process.wait({ signal });
      return { exitCode };
    } catch (error) {
      if (signal?.aborted) await killed;
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  };
  const handle: SessionProcess = {
    pid: process.pid,
    stdout: process.output("stdout", { signal }),
    stderr: process.output("stderr", { signal }),
    wait: () => (end ??= waitForEnd()),
    kill,
  };
  if (!stdin) return handle;
  const input = new WritableStream<Uint8Array>({
    write: (piece) => process.write(piece, { signal }),
    close: () => process.closeInput({ signal }),
    abort: () => process.closeInput(),
  });
  return { ...handle, stdin: input };
}

/** Whether an error says that a file, not its sandbox, does not exist. */
export function isMissingFile(error: unknown): boolean {
  if (!(error instanceof AtollError)) return false;
  if (error instanceof NotFoundError) return error.message.endsWith(": No such file or directory");
  return error instanceof ValidationError && error.message.endsWith(": Not a directory");
}

export async function nullIfMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (isMissingFile(error)) return null;
    throw error;
  }
}

/** The server removes empty directories like files; these frameworks want to be asked for `recursive`. */
export async function refuseDirectory(box: Sandbox, path: string, force: boolean, signal?: AbortSignal): Promise<void> {
  const entry = await nullIfMissing(box.files.stat(path, { signal }));
  if (entry?.isDir)
    throw new AtollError(`${absolutePath(path)} is a directory; ask for recursive`, { code: "CONFLICT", fields: ["recursive"] });
  if (entry === null && !force)
    throw new NotFoundError(`remove ${absolutePath(path)}: No such file or directory`, { code: "NOT_FOUND", status: 404 });
}
