/** Commands that go on by themselves: their input, output, end. */

import { AtollError, NotFoundError, TimeoutError, TransportError } from "./errors.js";
import { runtimePath } from "./paths.js";
import { pause } from "./pause.js";
import { eventsOf } from "./sse.js";
import { piecesOf, type Transport } from "./transport.js";
import type { Abortable, LogEvent, ProcessInfo } from "./types.js";
import { WebSocketClient } from "./websocket.js";

// A wait is asked for in turns of this length, so that no connection stands still for longer.
const WAIT_TURN_MS = 60_000;
const ANSWER_MARGIN_MS = 30_000;
const RECONNECTIONS = 5;
const RECONNECT_PAUSE_MS = 100;

export interface KillOptions extends Abortable {
  /** SIGKILL where none is named. */
  signalName?: string | number;
  /** With all that the command has started; true where nothing is said. */
  tree?: boolean;
}

export class Process {
  readonly pid: number;
  private input: Promise<WebSocketClient> | undefined;

  /** @internal */
  constructor(
    private readonly transport: Transport,
    private readonly sandbox: string,
    /** As it was when this object was made. */
    readonly info: ProcessInfo,
  ) {
    this.pid = info.pid;
  }

  async refresh(options: Abortable = {}): Promise<ProcessInfo> {
    const path = this.path();
    return (await this.transport.json<{ data: ProcessInfo }>({ method: "GET", path, signal: options.signal })).data;
  }

  /** Until it has ended; TimeoutError where that takes longer than `timeoutMs`. */
  async wait(options: Abortable & { timeoutMs?: number } = {}): Promise<ProcessInfo> {
    const deadline = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
    for (let failures = 0; ; ) {
      const turn = Math.max(0, Math.min(deadline - Date.now(), WAIT_TURN_MS));
      try {
        const answer = await this.transport.json<{ data: ProcessInfo }>({
          method: "GET",
          path: this.path("wait"),
          query: { timeoutMs: turn },
          timeoutMs: turn + ANSWER_MARGIN_MS,
          signal: options.signal,
        });
        return answer.data;
      } catch (error) {
        if (error instanceof TransportError && ++failures <= RECONNECTIONS) await pause(RECONNECT_PAUSE_MS, options.signal);
        else if (!(error instanceof TimeoutError)) throw error;
        else if (Date.now() >= deadline)
          throw new TimeoutError(`process ${this.pid} still runs after ${options.timeoutMs} ms`, { code: "TIMEOUT" });
      }
    }
  }

  /** One that has ended already is no error. */
  async kill(options: KillOptions = {}): Promise<void> {
    const json = { signal: options.signalName ?? "SIGKILL", tree: options.tree ?? true };
    try {
      await this.transport.json({ method: "DELETE", path: this.path(), json, signal: options.signal });
    } catch (error) {
      if (!(error instanceof NotFoundError) && (error as AtollError).code !== "INVALID_STATE") throw error;
    }
  }

  /** What it writes, as text and as it writes it, and its end. */
  async *logs(
    options: Abortable & { follow?: boolean; stdoutOffset?: number; stderrOffset?: number } = {},
  ): AsyncGenerator<LogEvent> {
    const { signal, follow = true, stdoutOffset, stderrOffset } = options;
    const query = { follow, stdoutOffset, stderrOffset };
    const answer = await this.transport.open({ method: "GET", path: this.path("logs"), query, signal });
    for await (const { type, data } of eventsOf(piecesOf(answer, signal))) {
      if (type === "exit") yield { type, process: data as unknown as ProcessInfo };
      else if (type !== "heartbeat") yield { type, ...data } as LogEvent;
    }
  }

  /**
   * All that it writes to one stream, as bytes. Nothing is asked for before somebody reads, so a stream that nobody reads
   * costs nothing; a connection that breaks is made again where it ended.
   */
  output(stream: "stdout" | "stderr", options: Abortable = {}): ReadableStream<Uint8Array> {
    const pieces = this.pieces(stream, options.signal);
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await pieces.next();
          if (done) controller.close();
          else controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
        },
        cancel: async () => void (await pieces.return(undefined)),
      },
      { highWaterMark: 0 },
    );
  }

  /** Only of a process that was spawned with `stdin`. */
  async write(data: string | Uint8Array, options: Abortable = {}): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    const socket = await this.openInput(options.signal);
    const INPUT_FRAME = 64 * 1024;
    for (let start = 0; start < bytes.length; start += INPUT_FRAME) {
      const piece = bytes.subarray(start, start + INPUT_FRAME);
      const framed = Buffer.allocUnsafe(piece.length + 1);
      framed[0] = 0;
      framed.set(piece, 1);
      await socket.sendBinary(framed);
    }
  }

  /** The end of its standard input. */
  async closeInput(options: Abortable = {}): Promise<void> {
    const socket = await this.openInput(options.signal);
    await socket.sendText(JSON.stringify({ type: "eof" }));
  }

  private async openInput(signal?: AbortSignal): Promise<WebSocketClient> {
    this.input ??= WebSocketClient.open(
      this.transport,
      this.path("attach"),
      (text) => {
        const message = JSON.parse(text) as { type?: string };
        if (message.type === "exit") void this.input?.then((socket) => socket.close());
      },
      signal,
    );
    return this.input.catch((error) => {
      this.input = undefined;
      throw error;
    });
  }

  private async *pieces(stream: "stdout" | "stderr", signal?: AbortSignal): AsyncGenerator<Buffer> {
    for (let offset = 0, failures = 0; ; ) {
      try {
        const query = { stream, offset, follow: true };
        const path = this.path("output");
        const answer = await this.transport.open({ method: "GET", path, query, signal, timeoutMs: 0 });
        for await (const piece of piecesOf(answer, signal)) {
          offset += piece.length;
          failures = 0;
          yield piece;
        }
        return;
      } catch (error) {
        if (!(error instanceof TransportError) || ++failures > RECONNECTIONS) throw error;
        await pause(RECONNECT_PAUSE_MS, signal);
      }
    }
  }

  private path(...rest: string[]): string {
    return runtimePath(this.sandbox, "process", String(this.pid), ...rest);
  }
}
