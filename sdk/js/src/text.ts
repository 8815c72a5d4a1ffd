/** Texts of files as eve and the AI SDK read and write them. */

export interface LineRange {
  /** 1-based. */
  startLine?: number | undefined;
  /** Inclusive; past the end is no error. */
  endLine?: number | undefined;
}

export function decodeText(bytes: Uint8Array, encoding = "utf-8", strict: boolean): string {
  if (isUtf8(encoding)) return new TextDecoder("utf-8", { fatal: strict }).decode(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(bufferEncoding(encoding));
}

export function encodeText(text: string, encoding = "utf-8"): Uint8Array {
  return isUtf8(encoding) ? Buffer.from(text) : Buffer.from(text, bufferEncoding(encoding));
}

/** Lines end with \r\n, \n or a lone \r, which stay as they are. */
export function linesOf(text: string, range: LineRange): string {
  const { startLine, endLine } = range;
  if (startLine === undefined && endLine === undefined) return text;
  for (const [name, line] of Object.entries({ startLine, endLine }))
    if (line !== undefined && (!Number.isInteger(line) || line < 1))
      throw new Error(`${name} must be a positive integer (1-based).`);
  if (startLine !== undefined && endLine !== undefined && startLine > endLine)
    throw new Error("startLine must not be greater than endLine.");
  const lines = text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
  return lines.slice((startLine ?? 1) - 1, endLine).join("");
}

function isUtf8(encoding: string): boolean {
  return /^utf-?8$/i.test(encoding);
}

function bufferEncoding(encoding: string): BufferEncoding {
  if (!Buffer.isEncoding(encoding)) throw new Error(`encoding: ${encoding} is not one that Node knows.`);
  return encoding;
}
