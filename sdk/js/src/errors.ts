/** What can go wrong, in a form that a caller can branch on. */

export interface ErrorDetails {
  code?: string;
  status?: number;
  fields?: readonly string[];
  retryAfterMs?: number;
  cause?: unknown;
}

/** The server said no. `code` is for programs, the message for people. */
export class AtollError extends Error {
  readonly code: string;
  readonly status: number;
  /** The fields of the request that are wrong. */
  readonly fields: readonly string[];
  /** When to try again; undefined: waiting is no remedy. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code ?? "";
    this.status = details.status ?? 0;
    this.fields = details.fields ?? [];
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** There is no such sandbox, process, file or snapshot. */
export class NotFoundError extends AtollError {}

/** There is no such template. */
export class TemplateNotFoundError extends NotFoundError {}

/** The request is wrong; `fields` says where. */
export class ValidationError extends AtollError {}

/** No key, a wrong one, or one that may not do this. */
export class AuthError extends AtollError {}

/** The name is taken, or the sandbox is in a state in which this cannot be done. */
export class ConflictError extends AtollError {}

/** A quota, a rate or a limit of the server is reached. */
export class QuotaError extends AtollError {}

/** It took longer than the caller would wait. */
export class TimeoutError extends AtollError {}

/** This server does not have what was asked for. */
export class NotSupportedError extends AtollError {}

/** The server could not be reached, or the connection broke: the request may or may not have happened. */
export class TransportError extends AtollError {}

const BY_CODE: Record<string, typeof AtollError> = {
  TEMPLATE_NOT_FOUND: TemplateNotFoundError,
  VALIDATION_ERROR: ValidationError,
  QUOTA_EXCEEDED: QuotaError,
  NOT_SUPPORTED: NotSupportedError,
};

const BY_STATUS: Record<number, typeof AtollError> = {
  400: ValidationError,
  401: AuthError,
  403: AuthError,
  404: NotFoundError,
  408: TimeoutError,
  409: ConflictError,
  429: QuotaError,
  501: NotSupportedError,
};

/** @internal The error that an answer stands for. */
export function errorFromAnswer(status: number, body: unknown): AtollError {
  const outer = isRecord(body) ? body : {};
  const inner = isRecord(outer.error) ? outer.error : outer;
  const code = typeof inner.code === "string" ? inner.code : "";
  const message = typeof inner.message === "string" ? inner.message : `the server answered ${status}`;
  const Kind = BY_CODE[code] ?? BY_STATUS[status] ?? AtollError;
  return new Kind(message, {
    code,
    status,
    fields: Array.isArray(inner.fields) ? inner.fields.filter((field) => typeof field === "string") : [],
    ...(typeof inner.retryAfterMs === "number" ? { retryAfterMs: inner.retryAfterMs } : {}),
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
