/** The part of RFC 6455 that a process's standard input needs: masked frames out, frames in, ping and close. */

import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { TransportError, errorFromAnswer } from "./errors.js";
import { broken, type Transport } from "./transport.js";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const HANDSHAKE_TIMEOUT_MS = 30_000;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export class WebSocketClient {
  /** Settles when the other side has gone. */
  readonly closed: Promise<void>;
  private readonly parser: FrameParser;

  private constructor(private readonly socket: Duplex, head: Buffer, onText: (text: string) => void) {
    this.parser = new FrameParser((opcode, payload) => {
      if (opcode === TEXT) onText(payload.toString());
      else if (opcode === PING) socket.write(frame(PONG, payload));
      else if (opcode === CLOSE) socket.end(frame(CLOSE, payload.subarray(0, 2)));
    });
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => socket.destroy());
    socket.on("data", (piece: Buffer) => this.parser.feed(piece));
    if (head.length > 0) this.parser.feed(head);
  }

  static open(
    transport: Transport,
    path: string,
    onText: (text: string) => void,
    signal?: AbortSignal,
  ): Promise<WebSocketClient> {
    signal?.throwIfAborted();
    const key = randomBytes(16).toString("base64");
    const options = transport.requestOptions(path, "GET", {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": key,
    });
    return new Promise((resolve, reject) => {
      const request = transport.start({ ...options, timeout: HANDSHAKE_TIMEOUT_MS, ...(signal ? { signal } : {}) });
      request.on("timeout", () => request.destroy(new Error("no answer to the handshake")));
      request.on("error", (error) => reject(signal?.aborted ? signal.reason : broken(error, path)));
      request.on("response", (answer) => void refused(answer).then(reject, reject));
      request.on("upgrade", (answer, socket, head) => {
        const accept = createHash("sha1").update(key + GUID).digest("base64");
        if (answer.headers["sec-websocket-accept"] === accept) {
          resolve(new WebSocketClient(socket, head, onText));
          return;
        }
        socket.destroy();
        reject(new TransportError(`${path}: the handshake's answer is wrong`));
      });
      request.end();
    });
  }

  sendText(text: string): Promise<void> {
    return this.write(frame(TEXT, Buffer.from(text)));
  }

  sendBinary(payload: Uint8Array): Promise<void> {
    return this.write(frame(BINARY, payload));
  }

  close(): void {
    if (!this.socket.destroyed) this.socket.end(frame(CLOSE, Buffer.from([0x03, 0xe8])), () => this.socket.destroy());
  }

  private write(bytes: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.socket.destroyed) reject(new TransportError("the connection to the process is closed"));
      else this.socket.write(bytes, (error) => (error ? reject(broken(error, "standard input")) : resolve()));
    });
  }
}

async function refused(answer: IncomingMessage): Promise<Error> {
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    body = undefined; // The status says enough.
  }
  return errorFromAnswer(answer.statusCode ?? 0, body);
}

function frame(opcode: number, payload: Uint8Array): Buffer {
  const size = payload.length;
  const extra = size < 126 ? 0 : size < 65536 ? 2 : 8;
  const bytes = Buffer.allocUnsafe(6 + extra + size);
  bytes[0] = 0x80 | opcode;
  bytes[1] = 0x80 | (extra === 0 ? size : extra === 2 ? 126 : 127);
  if (extra === 2) bytes.writeUInt16BE(size, 2);
  if (extra === 8) bytes.writeBigUInt64BE(BigInt(size), 2);
  const mask = randomBytes(4);
  mask.copy(bytes, 2 + extra);
  const start = 6 + extra;
  for (let index = 0; index < size; ++index) bytes[start + index] = payload[index]! ^ mask[index & 3]!;
  return bytes;
}

class FrameParser {
  private rest: Buffer = Buffer.alloc(0);
  private message: Buffer[] = [];
  private opcode = 0;

  constructor(private readonly onFrame: (opcode: number, payload: Buffer) => void) {}

  feed(piece: Buffer): void {
    this.rest = this.rest.length === 0 ? piece : Buffer.concat([this.rest, piece]);
    while (this.takeFrame());
  }

  private takeFrame(): boolean {
    if (this.rest.length < 2) return false;
    const short = this.rest[1]! & 0x7f;
    const header = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (this.rest.length < header) return false;
    const size =
      header === 2 ? short : header === 4 ? this.rest.readUInt16BE(2) : Number(this.rest.readBigUInt64BE(2));
    if (this.rest.length < header + size) return false;
    const first = this.rest[0]!;
    const payload = this.rest.subarray(header, header + size);
    this.rest = this.rest.subarray(header + size);
    this.deliver((first & 0x80) !== 0, first & 0x0f, payload);
    return true;
  }

  private deliver(last: boolean, opcode: number, payload: Buffer): void {
    if (opcode >= CLOSE) {
      this.onFrame(opcode, payload);
      return;
    }
    if (opcode !== 0) {
      this.opcode = opcode;
      this.message = [];
    }
    this.message.push(payload);
    if (last) this.onFrame(this.opcode, Buffer.concat(this.message));
  }
}
