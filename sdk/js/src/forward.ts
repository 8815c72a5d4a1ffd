/** A port of a sandbox as a port of this host, over the API alone: one process of the sandbox for each connection. */

import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { Sandbox } from "./sandbox.js";

export interface Forward {
  /** On 127.0.0.1. */
  readonly port: number;
  close(): Promise<void>;
}

export async function forwardPort(box: Sandbox, port: number): Promise<Forward> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    void carry(box, port, socket).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of open) socket.destroy();
      await closed(server);
    },
  };
}

// bash has TCP of its own, so that nothing needs to be installed; what it starts in the background has
// its input only by another number. What the port sends ends the process; so does our end.
const CARRIER = (port: number) => `exec 3<>/dev/tcp/127.0.0.1/${port} 4<&0 || exit 1; cat <&4 >&3 & exec cat <&3`;

async function carry(box: Sandbox, port: number, socket: Socket): Promise<void> {
  const process = await box.spawn(["/bin/bash", "-c", CARRIER(port)], { stdin: true });
  try {
    const inward = (async () => {
      for await (const piece of socket) await process.write(piece as Buffer);
      await process.closeInput();
    })().catch(() => undefined); // The process has ended: its output says so below.
    await pipeline(process.output("stdout") as unknown as AsyncIterable<Uint8Array>, socket);
    await inward;
  } finally {
    socket.destroy();
    await process.kill().catch(() => undefined); // Its sandbox may be gone.
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
