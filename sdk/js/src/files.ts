/** A sandbox's files. Relative paths start at /workspace. */

import { Readable } from "node:stream";
import { routeOf, runtimePath } from "./paths.js";
import { eventsOf } from "./sse.js";
import { piecesOf, type Content, type Request, type Transport } from "./transport.js";
import type { Abortable, FileEvent, FileInfo } from "./types.js";

export class Files {
  /** @internal */
  constructor(
    private readonly transport: Transport,
    private readonly sandbox: string,
  ) {}

  /** As text; bytes that are not UTF-8 are replaced. */
  async readText(path: string, options: Abortable = {}): Promise<string> {
    return (await this.read(path, options)).toString("utf8");
  }

  read(path: string, options: Abortable & { range?: { start: number; end?: number } } = {}): Promise<Buffer> {
    return this.transport.bytes(this.download(path, options));
  }

  async readStream(path: string, options: Abortable = {}): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.transport.open(this.download(path, options));
    return Readable.toWeb(Readable.from(piecesOf(answer, options.signal))) as ReadableStream<Uint8Array>;
  }

  /** Replaces the file at once, with the directories above it. */
  async write(path: string, content: Content, options: Abortable & { mode?: number } = {}): Promise<FileInfo> {
    return (
      await this.call<{ data: FileInfo }>("PUT", "upload", path, {
        content,
        query: { mode: options.mode?.toString(8) },
        headers: { "Content-Type": "application/octet-stream" },
        signal: options.signal,
        timeoutMs: 0,
      })
    ).data;
  }

  async stat(path: string, options: Abortable = {}): Promise<FileInfo> {
    return (await this.call<{ data: FileInfo }>("GET", "stat", path, options)).data;
  }

  async exists(path: string, options: Abortable = {}): Promise<boolean> {
    return (await this.call<{ data: { exists: boolean } }>("GET", "exists", path, options)).data.exists;
  }

  /** Hidden ones only with `all`. */
  async list(
    path = "/workspace",
    options: Abortable & { recursive?: boolean; all?: boolean; limit?: number } = {},
  ): Promise<FileInfo[]> {
    const { signal, recursive, all, limit } = options;
    const query = { recursive, all, limit };
    return (await this.call<{ data: { entries: FileInfo[] } }>("GET", "list", path, { query, signal })).data.entries;
  }

  /** With the directories above it, where nothing else is said. */
  async mkdir(path: string, options: Abortable & { recursive?: boolean } = {}): Promise<void> {
    const query = { recursive: options.recursive ?? true };
    await this.call("POST", "mkdir", path, { query, signal: options.signal });
  }

  async move(from: string, to: string, options: Abortable = {}): Promise<void> {
    const path = runtimePath(this.sandbox, "fs/move");
    await this.transport.json({ method: "POST", path, json: { from, to }, signal: options.signal });
  }

  async remove(
    path: string,
    options: Abortable & { recursive?: boolean; force?: boolean } = {},
  ): Promise<void> {
    const { signal, recursive, force } = options;
    const route = runtimePath(this.sandbox, "fs") + routeOf(path);
    await this.transport.json({ method: "DELETE", path: route, query: { recursive, force }, signal });
  }

  /** A directory as a tar archive, gzip-compressed unless `format` is "tar". */
  async downloadDir(
    path: string,
    options: Abortable & { format?: "tar" | "tar.gz" } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const { signal, format } = options;
    const route = runtimePath(this.sandbox, "fs/download-dir") + routeOf(path);
    const answer = await this.transport.open({ method: "GET", path: route, query: { format }, signal, timeoutMs: 0 });
    return Readable.toWeb(Readable.from(piecesOf(answer, signal))) as ReadableStream<Uint8Array>;
  }

  /** Unpacks a tar archive, plain or gzip-compressed. */
  async uploadDir(path: string, archive: Content, options: Abortable = {}): Promise<void> {
    const headers = { "Content-Type": "application/x-tar" };
    await this.call("PUT", "upload-dir", path, { content: archive, headers, signal: options.signal, timeoutMs: 0 });
  }

  /** What changes, from the moment the first value is asked for; `onReady` says that nothing is missed from now on. */
  async *watch(
    path = "/workspace",
    options: Abortable & { recursive?: boolean; onReady?: () => void } = {},
  ): AsyncGenerator<FileEvent> {
    const { signal, recursive, onReady } = options;
    const route = runtimePath(this.sandbox, "fs/watch") + routeOf(path);
    const answer = await this.transport.open({ method: "GET", path: route, query: { recursive }, signal });
    for await (const { type, data } of eventsOf(piecesOf(answer, signal))) {
      if (type === "ready") onReady?.();
      else if (type !== "heartbeat") yield { path: "", isDir: false, ...data, type: type as FileEvent["type"] };
    }
  }

  private download(path: string, options: Abortable & { range?: { start: number; end?: number } }): Request {
    const { range, signal } = options;
    return {
      method: "GET",
      path: runtimePath(this.sandbox, "fs/download") + routeOf(path),
      headers: range ? { Range: `bytes=${range.start}-${range.end ?? ""}` } : {},
      signal,
      timeoutMs: 0,
    };
  }

  private call<T>(method: string, what: string, path: string, rest: Partial<Request> & Abortable): Promise<T> {
    const { signal, query, content, headers, timeoutMs } = rest;
    return this.transport.json<T>({
      method,
      path: runtimePath(this.sandbox, "fs", what) + routeOf(path),
      signal,
      ...(query ? { query } : {}),
      ...(content === undefined ? {} : { content }),
      ...(headers ? { headers } : {}),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  }
}
