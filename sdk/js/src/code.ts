/** Code in persistent kernels: each session and language has one, which keeps what code defines. */

import { given, runtimePath } from "./paths.js";
import type { Transport } from "./transport.js";
import type { Abortable } from "./types.js";

export type CodeLanguage = "python" | "node" | "typescript" | "bash";

export interface CodeError {
  name: string;
  message: string;
  traceback?: string;
}

/** One thing that code has shown, in the richest of its forms. */
export type CodeResultPart =
  | { type: "text"; value: string }
  | { type: "json"; value: unknown }
  | { type: "image"; format: "png" | "jpeg" | "svg"; /** In base64. */ data: string }
  | { type: "html"; value: string }
  | { type: "dataframe"; columns: { name: string; dtype: string }[]; rows: unknown[][]; truncated: boolean }
  | ({ type: "error" } & CodeError);

export interface CodeExecutionResult {
  /** 0; 1 after an error, bash's own status, 124 when the time was up. */
  exitCode: number;
  stdout: string;
  stderr: string;
  durationMs: number;
  results: CodeResultPart[];
  timedOut: boolean;
  /** The next call starts a new kernel, without the variables. */
  kernelEnded: boolean;
  error?: CodeError;
}

export interface CodeExecutionOptions extends Abortable {
  /** Calls with the same session share variables. */
  sessionId?: string;
  /** Then the code is interrupted; its kernel and variables stay. 0: never. Default: 60,000. */
  timeoutMs?: number;
  /** For this call only. */
  env?: Readonly<Record<string, string>>;
  /** Of a kernel that this call starts. */
  cwd?: string;
  /** The same key in the same session gives the same result for 15 minutes, also while the code runs. */
  idempotencyKey?: string;
}

export interface CodeContext {
  id: string;
  sessionId: string;
  language: CodeLanguage;
  cwd: string;
  running: boolean;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const ANSWER_MARGIN_MS = 30_000;

export async function runCode(
  transport: Transport,
  sandbox: string,
  language: CodeLanguage,
  source: string,
  { signal, ...options }: CodeExecutionOptions,
): Promise<CodeExecutionResult> {
  const limit = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const answer = await transport.json<{ result: CodeExecutionResult }>({
    method: "POST",
    path: runtimePath(sandbox, "code/run"),
    json: { language, source, ...given(options) },
    timeoutMs: limit === 0 ? 0 : limit + ANSWER_MARGIN_MS,
    signal,
  });
  return answer.result;
}

/** What code runs in, beside the contexts that `runCode` makes by itself. */
export class CodeContexts {
  /** @internal */
  constructor(
    private readonly transport: Transport,
    private readonly sandbox: string,
  ) {}

  async list(options: Abortable = {}): Promise<CodeContext[]> {
    return this.ask<CodeContext[]>("GET", "", undefined, options);
  }

  async create(
    wanted: { language?: CodeLanguage; cwd?: string; sessionId?: string } = {},
    options: Abortable = {},
  ): Promise<CodeContext> {
    return this.ask<CodeContext>("POST", "", given(wanted), options);
  }

  async remove(context: CodeContext | string, options: Abortable = {}): Promise<void> {
    await this.ask("DELETE", nameOf(context), undefined, options);
  }

  /** Its variables are gone; its place stays. */
  async restart(context: CodeContext | string, options: Abortable = {}): Promise<void> {
    await this.ask("POST", nameOf(context) + "/restart", undefined, options);
  }

  /** Another context that begins with all the variables of this one. Only Python's can be branched. */
  async fork(context: CodeContext | string, sessionId?: string, options: Abortable = {}): Promise<CodeContext> {
    return this.ask<CodeContext>("POST", nameOf(context) + "/fork", given({ sessionId }), options);
  }

  private async ask<T>(method: string, tail: string, json: unknown, options: Abortable): Promise<T> {
    const path = runtimePath(this.sandbox, "code/contexts" + tail);
    return (await this.transport.json<{ data: T }>({ method, path, json, ...options })).data;
  }
}

function nameOf(context: CodeContext | string): string {
  return "/" + encodeURIComponent(typeof context === "string" ? context : context.id);
}
