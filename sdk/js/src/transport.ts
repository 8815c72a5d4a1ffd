/** One request and its answer over HTTP, on a Unix socket or on TCP. */

import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { AtollError, TransportError, errorFromAnswer } from "./errors.js";

export interface ClientOptions {
  /** `http://host:port`, `https://host:port` or `unix:/path`; else ATOLL_URL, else the socket of this host. */
  url?: string;
  /** Else ATOLL_API_KEY. Not needed on the socket. */
  apiKey?: string;
  /** For administrators: as which tenant. Else ATOLL_TENANT. */
  tenant?: string;
}

export type Content = string | Uint8Array | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>;

export interface Request {
  method: string;
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  json?: unknown;
  content?: Content;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Until the answer begins; 0: as long as it takes. */
  timeoutMs?: number;
}

const ANSWER_TIMEOUT_MS = 60_000;
const ERROR_BODY_BYTES = 1 << 20;
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);

export class Transport {
  readonly base: URL;
  readonly socketPath: string | undefined;
  private readonly agent: http.Agent;
  private readonly standing: Record<string, string>;

  constructor(options: ClientOptions = {}) {
    const environment = process.env;
    const socket = environment.ATOLL_SOCKET || "/run/atoll/atoll.sock";
    const url = options.url || environment.ATOLL_URL || `unix:${socket}`;
    const unix = /^unix:(?:\/\/)?(\/.*)$/.exec(url);
    this.socketPath = unix?.[1];
    this.base = new URL(unix ? "http://localhost" : url);
    if (this.base.protocol !== "http:" && this.base.protocol !== "https:")
      throw new AtollError(`url: ${url} is none of http://, https:// and unix:/path`, { code: "VALIDATION_ERROR" });
    this.agent = new (this.base.protocol === "https:" ? https : http).Agent({ keepAlive: true, maxFreeSockets: 32 });
    const apiKey = options.apiKey || environment.ATOLL_API_KEY;
    const tenant = options.tenant || environment.ATOLL_TENANT;
    this.standing = {
      "User-Agent": "atoll-sandbox-js/0.1.0",
      ...(apiKey ? { Authorization: `Bearer ${apiKey}` } : {}),
      ...(tenant ? { "Atoll-Tenant": tenant } : {}),
    };
  }

  /** Lets go of idle connections. */
  close(): void {
    this.agent.destroy();
  }

  /** The answer's body, not read yet; what is not a success is thrown. */
  async open(request: Request): Promise<http.IncomingMessage> {
    request.signal?.throwIfAborted();
    const answer = await this.attempt(request, true);
    const status = answer.statusCode ?? 0;
    if (status >= 200 && status < 300) return answer;
    throw errorFromAnswer(status, parsed((await bodyOf(answer, request.signal, ERROR_BODY_BYTES)).toString()));
  }

  async bytes(request: Request): Promise<Buffer> {
    return bodyOf(await this.open(request), request.signal);
  }

  async json<T>(request: Request): Promise<T> {
    return parsed((await this.bytes(request)).toString()) as T;
  }

  /** @internal What a handshake needs besides its own headers. */
  requestOptions(path: string, method: string, headers: Record<string, string>): http.RequestOptions {
    return {
      method,
      path: this.base.pathname.replace(/\/$/, "") + path,
      headers: { ...this.standing, ...headers },
      ...(this.socketPath
        ? { socketPath: this.socketPath }
        : { host: this.base.hostname.replace(/^\[|\]$/g, ""), port: this.base.port || undefined }),
    };
  }

  /** @internal */
  start(options: http.RequestOptions): http.ClientRequest {
    return (this.base.protocol === "https:" ? https : http).request(options);
  }

  private async attempt(request: Request, mayRepeat: boolean): Promise<http.IncomingMessage> {
    const headers: Record<string, string> = { ...request.headers };
    let content = request.content;
    if (request.json !== undefined) {
      content = JSON.stringify(request.json);
      headers["Content-Type"] = "application/json";
    }
    const whole = content === undefined || typeof content === "string" || content instanceof Uint8Array;
    const sent = this.start({
      ...this.requestOptions(request.path + queryString(request.query), request.method, headers),
      agent: this.agent,
    });
    try {
      return await answerOf(sent, content, request);
    } catch (error) {
      // A kept connection may close just as it is used again; then nothing of the request was looked at.
      const stale = sent.reusedSocket && error instanceof TransportError;
      if (stale && mayRepeat && whole && REPEATABLE.has(request.method) && !request.signal?.aborted)
        return this.attempt(request, false);
      throw error;
    }
  }
}

function answerOf(
  sent: http.ClientRequest,
  content: Content | undefined,
  request: Request,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { signal } = request;
    const limit = request.timeoutMs ?? ANSWER_TIMEOUT_MS;
    const late = new TransportError(`${request.method} ${request.path}: no answer within ${limit} ms`, {
      code: "TIMEOUT",
    });
    const timer = limit > 0 ? setTimeout(() => sent.destroy(late), limit) : undefined;
    const abort = () => sent.destroy(signal?.reason instanceof Error ? signal.reason : undefined);
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    signal?.addEventListener("abort", abort, { once: true });
    sent.once("response", (answer) => {
      settle();
      answer.on("error", () => undefined); // Readers hear of it; without one it is nobody's business.
      resolve(answer);
    });
    sent.on("error", (error) => {
      settle();
      if (signal?.aborted) reject(signal.reason);
      else if (error instanceof AtollError) reject(error);
      else reject(broken(error, `${request.method} ${request.path}`));
    });
    send(sent, content);
  });
}

function send(sent: http.ClientRequest, content: Content | undefined): void {
  if (content === undefined || typeof content === "string" || content instanceof Uint8Array) {
    if (content !== undefined) sent.setHeader("Content-Length", Buffer.byteLength(content));
    sent.end(content);
    return;
  }
  const source = Readable.from(content as AsyncIterable<Uint8Array>, { objectMode: false });
  source.on("error", (error) => sent.destroy(error));
  sent.on("close", () => source.destroy());
  source.pipe(sent);
}

async function bodyOf(answer: http.IncomingMessage, signal?: AbortSignal, limit = Infinity): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of piecesOf(answer, signal)) {
    size += piece.length;
    if (size > limit) break;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The pieces of a body; leaving the loop, or an abort, closes the connection. */
export async function* piecesOf(answer: http.IncomingMessage, signal?: AbortSignal): AsyncGenerator<Buffer> {
  const abort = () => answer.destroy();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    signal?.throwIfAborted();
    for await (const piece of answer) yield piece as Buffer;
    signal?.throwIfAborted();
    if (!answer.complete) throw new TransportError("the connection broke in the middle of an answer");
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof AtollError ? error : broken(error, "an answer");
  } finally {
    signal?.removeEventListener("abort", abort);
    if (!answer.readableEnded) answer.destroy();
  }
}

export function broken(error: unknown, what: string): TransportError {
  const text = error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
  return new TransportError(`${what}: ${text}`, { code: "UNREACHABLE", cause: error });
}

function queryString(query: Request["query"]): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (pairs.length === 0) return "";
  return "?" + new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString();
}

function parsed(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TransportError(`the answer is not JSON: ${text.slice(0, 200)}`, { cause: error });
  }
}
