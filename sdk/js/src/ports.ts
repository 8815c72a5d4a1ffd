/** Ways into a sandbox's ports. */

import type { Socket } from "node:net";
import { errorFromAnswer, TransportError } from "./errors.js";
import { runtimePath } from "./paths.js";
import type { Transport } from "./transport.js";
import type { Abortable } from "./types.js";

export interface PreviewLink {
  previewId: string;
  sandboxId: string;
  port: number;
  access: "private" | "public" | "signed";
  /** `disabled`: it has expired. */
  status: "ready" | "disabled";
  /** What to open; null where the server has no TCP port. */
  url: string | null;
  /** The same without a token. */
  origin: string | null;
  /** Where it is on the API's own address, for programs. */
  path: string;
  createdAt: string;
  expiresAt: string | null;
}

export interface PreviewOptions extends Abortable {
  /** `private` (default): the URL is good for 15 minutes, then a cookie for 12 hours. */
  access?: PreviewLink["access"];
  expiresInSeconds?: number;
}

export class Ports {
  /** @internal */
  constructor(
    private readonly transport: Transport,
    private readonly sandbox: string,
  ) {}

  /** A link that opens the port in a browser. */
  async open(port: number, options: PreviewOptions = {}): Promise<PreviewLink> {
    const { signal, ...wish } = options;
    const path = runtimePath(this.sandbox, "preview-links");
    const json = { port, ...wish };
    return (await this.transport.json<{ previewLink: PreviewLink }>({ method: "POST", path, json, signal })).previewLink;
  }

  async list(options: Abortable = {}): Promise<PreviewLink[]> {
    const path = runtimePath(this.sandbox, "preview-links");
    return (await this.transport.json<{ previewLinks: PreviewLink[] }>({ method: "GET", path, ...options })).previewLinks;
  }

  /** Whoever opened it is shut out. */
  async remove(previewId: string, options: Abortable = {}): Promise<void> {
    const path = runtimePath(this.sandbox, `preview-links/${encodeURIComponent(previewId)}`);
    await this.transport.bytes({ method: "DELETE", path, ...options });
  }

  /** A raw connection to the port. */
  connect(port: number): Promise<Socket> {
    const path = runtimePath(this.sandbox, `ports/${port}/tcp`);
    const sent = this.transport.start(
      this.transport.requestOptions(path, "GET", { Connection: "Upgrade", Upgrade: "tcp" }),
    );
    return new Promise((resolve, reject) => {
      sent.once("upgrade", (_answer, socket, ahead) => {
        if (ahead.length > 0) socket.unshift(ahead);
        resolve(socket as Socket);
      });
      sent.once("response", (answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => pieces.push(piece));
        answer.on("end", () => {
          let body: unknown;
          try {
            body = JSON.parse(Buffer.concat(pieces).toString());
          } catch {
            body = undefined;
          }
          reject(errorFromAnswer(answer.statusCode ?? 0, body));
        });
        answer.on("error", reject);
      });
      sent.once("error", (error) => reject(new TransportError(`port ${port}: ${error.message}`, { cause: error })));
      sent.end();
    });
  }
}
