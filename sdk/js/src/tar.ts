/** A tar archive (ustar with pax paths) of files in memory. */

import { posix } from "node:path";

const BLOCK = 512;

export function tarOf(files: readonly { path: string; content: string | Uint8Array }[]): Buffer {
  const blocks: Buffer[] = [];
  for (const { path, content } of files) {
    const name = posix.normalize(path).replace(/^\/+/, "");
    if (name === "" || name.startsWith("../")) throw new Error(`seed file: ${path} is not a path inside the sandbox`);
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    // A script is meant to be run; eve hands over no modes.
    const mode = bytes[0] === 0x23 && bytes[1] === 0x21 ? 0o755 : 0o644;
    blocks.push(...paxOf(name), headerOf(shortName(name), bytes.length, "0", mode), padded(bytes));
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function headerOf(name: string, size: number, type: string, mode: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0, 100);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(Math.floor(Date.now() / 1000), 11), 136);
  header.write("        ", 148);
  header.write(type, 156);
  header.write("ustar\0" + "00", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(octal(sum, 6) + "\0 ", 148);
  return header;
}

function paxOf(name: string): Buffer[] {
  if (Buffer.byteLength(name) <= 100) return [];
  const record = ` path=${name}\n`;
  let length = Buffer.byteLength(record);
  length += String(length + String(length).length).length;
  const bytes = Buffer.from(`${length}${record}`);
  return [headerOf("pax", bytes.length, "x", 0o644), padded(bytes)];
}

function shortName(name: string): string {
  return Buffer.byteLength(name) <= 100 ? name : "long";
}

function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]);
}

function octal(value: number, width: number): string {
  return value.toString(8).padStart(width, "0");
}
