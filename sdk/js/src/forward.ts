/** A port of a sandbox as a port of this host. */

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
  const server = createServer({ allowHalfOpen: true }, (socket) => {
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

// What one side ends, the other side may still answer.
async function carry(box: Sandbox, port: number, socket: Socket): Promise<void> {
  const inside = await box.ports.connect(port);
  inside.on("error", () => socket.destroy());
  socket.on("close", () => inside.destroy());
  await Promise.allSettled([pipeline(socket, inside), pipeline(inside, socket)]);
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
