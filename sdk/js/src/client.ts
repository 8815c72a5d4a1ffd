/** A server: its sandboxes, snapshots, templates, secrets and events. */

import { AtollError, ConflictError, NotFoundError } from "./errors.js";
import { sandboxPath } from "./paths.js";
import { pause } from "./pause.js";
import { Sandbox, eventStream } from "./sandbox.js";
import { Transport, type ClientOptions, type Content, type Request } from "./transport.js";
import type {
  Abortable,
  AtollEvent,
  CreateOptions,
  SandboxInfo,
  Secret,
  Snapshot,
  Status,
  System,
  Template,
  TemplateOptions,
} from "./types.js";

// How long a sandbox of that name may be in the making by somebody else.
const CREATION_MS = 60_000;
const CREATION_POLL_MS = 20;

export class Client {
  private readonly transport: Transport;
  readonly snapshots: Snapshots;
  readonly templates: Templates;
  readonly secrets: Secrets;

  constructor(options: ClientOptions = {}) {
    this.transport = new Transport(options);
    this.snapshots = new Snapshots(this.transport);
    this.templates = new Templates(this.transport);
    this.secrets = new Secrets(this.transport);
  }

  /** Makes a sandbox that is ready for commands. */
  async create(options: CreateOptions & Abortable = {}): Promise<Sandbox> {
    const { signal, template, ...rest } = options;
    const json = { ...rest, ...(template === undefined ? {} : { templateId: template }) };
    const path = "/v1/sandboxes";
    const info = await this.transport.json<SandboxInfo>({ method: "POST", path, json, signal, timeoutMs: 0 });
    return new Sandbox(this.transport, info.id, info);
  }

  /** The sandbox of that name, made where there is none, and running. Callers at the same time get the same one. */
  async getOrCreate(options: CreateOptions & { name: string } & Abortable): Promise<Sandbox> {
    const { name, signal } = options;
    for (const deadline = Date.now() + CREATION_MS; ; await pause(CREATION_POLL_MS, signal)) {
      const found = await this.attach(name, { signal });
      if (found) return found;
      try {
        return await this.create(options);
      } catch (error) {
        // Somebody else is making it: its name is taken before it can be found.
        const taken = error instanceof ConflictError && error.fields.includes("name");
        if (!taken || Date.now() > deadline) throw error;
      }
    }
  }

  /** The sandbox of that id or name, running; null where there is none. */
  async attach(sandbox: string, options: Abortable = {}): Promise<Sandbox | null> {
    try {
      const found = await this.get(sandbox, options);
      const status = found.info?.status;
      if (status === "stopped" || status === "paused") await found.start(options);
      else if (status === "provisioning") await found.wait("running", options);
      else if (status === "failed")
        throw new AtollError(`sandbox ${sandbox} has failed: ${found.info?.error ?? found.info?.reason}`, {
          code: "INVALID_STATE",
        });
      return found;
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  async get(sandbox: string, options: Abortable = {}): Promise<Sandbox> {
    const info = await this.transport.json<SandboxInfo>({ method: "GET", path: sandboxPath(sandbox), ...options });
    return new Sandbox(this.transport, info.id, info);
  }

  /** The same without asking the server: `info` is undefined. */
  sandbox(idOrName: string): Sandbox {
    return new Sandbox(this.transport, idOrName, undefined);
  }

  async list(
    options: Abortable & { status?: Status; metadata?: Record<string, string>; limit?: number; offset?: number } = {},
  ): Promise<Sandbox[]> {
    const { signal, metadata, ...query } = options;
    const path = "/v1/sandboxes";
    const answer = await this.transport.json<{ sandboxes: SandboxInfo[] }>({ method: "GET", path, query, signal });
    const wanted = Object.entries(metadata ?? {});
    return answer.sandboxes
      .filter((info) => wanted.every(([name, value]) => info.metadata[name] === value))
      .map((info) => new Sandbox(this.transport, info.id, info));
  }

  async delete(sandbox: string, options: Abortable = {}): Promise<void> {
    await this.sandbox(sandbox).delete(options);
  }

  /** What happens to all sandboxes, from now on or from the event after `after`. */
  async *events(options: Abortable & { after?: string; follow?: boolean } = {}): AsyncGenerator<AtollEvent> {
    yield* eventStream(this.transport, "/v1/events", options);
  }

  system(options: Abortable = {}): Promise<System> {
    return this.transport.json({ method: "GET", path: "/v1/system", ...options });
  }

  whoami(options: Abortable = {}): Promise<{ actor: string; tenant: string; role: string; allTenants: boolean }> {
    return this.transport.json({ method: "GET", path: "/v1/whoami", ...options });
  }

  /** Any request of the API, for what has no method here. */
  request<T = unknown>(method: string, path: string, options: Omit<Request, "method" | "path"> = {}): Promise<T> {
    return this.transport.json<T>({ method, path, ...options });
  }

  /** Lets go of idle connections; the client can be used again. */
  close(): void {
    this.transport.close();
  }
}

export class Snapshots {
  /** @internal */
  constructor(private readonly transport: Transport) {}

  async list(options: Abortable = {}): Promise<Snapshot[]> {
    const path = "/v1/snapshots";
    return (await this.transport.json<{ snapshots: Snapshot[] }>({ method: "GET", path, ...options })).snapshots;
  }

  /** By its id or a tag. */
  get(snapshot: string, options: Abortable = {}): Promise<Snapshot> {
    return this.transport.json({ method: "GET", path: this.path(snapshot), ...options });
  }

  async delete(snapshot: string, options: Abortable = {}): Promise<void> {
    await this.transport.json({ method: "DELETE", path: this.path(snapshot), ...options });
  }

  async prune(
    options: Abortable & { sandbox?: string; keepNewest?: number; keepYoungerThanSeconds?: number; dryRun?: boolean },
  ): Promise<string[]> {
    const { signal, ...json } = options;
    const path = "/v1/snapshots/prune";
    return (await this.transport.json<{ removed: string[] }>({ method: "POST", path, json, signal })).removed;
  }

  private path(snapshot: string): string {
    return `/v1/snapshots/${encodeURIComponent(snapshot)}`;
  }
}

export class Templates {
  /** @internal */
  constructor(private readonly transport: Transport) {}

  async list(options: Abortable & { all?: boolean } = {}): Promise<Template[]> {
    const { signal, all } = options;
    const path = "/v1/templates";
    return (await this.transport.json<{ templates: Template[] }>({ method: "GET", path, query: { all }, signal })).templates;
  }

  /** NAME, NAME@VERSION or NAME:TAG. */
  get(template: string, options: Abortable = {}): Promise<Template> {
    return this.transport.json({ method: "GET", path: this.path(template), ...options });
  }

  async exists(template: string, options: Abortable = {}): Promise<boolean> {
    try {
      await this.get(template, options);
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Builds one, or makes one of a snapshot. One that is made of the same things is reused. */
  create(name: string, options: TemplateOptions & Abortable): Promise<Template & { reused: boolean }> {
    const { signal, ...rest } = options;
    return this.transport.json({ method: "POST", path: "/v1/templates", json: { name, ...rest }, signal, timeoutMs: 0 });
  }

  /** From an image of a registry, or from an archive. */
  import(
    name: string,
    source: { image: string; user?: string; password?: string; insecure?: boolean } | { archive: Content },
    options: Abortable & { tag?: string } = {},
  ): Promise<Template & { reused: boolean }> {
    const { signal, tag } = options;
    const request = { method: "POST", path: "/v1/templates/import", signal, timeoutMs: 0 };
    if ("archive" in source) {
      const headers = { "Content-Type": "application/octet-stream" };
      return this.transport.json({ ...request, query: { name, tag }, headers, content: source.archive });
    }
    const { image, ...rest } = source;
    return this.transport.json({ ...request, json: { name, source: image, ...rest, ...(tag ? { tag } : {}) } });
  }

  async delete(template: string, options: Abortable = {}): Promise<void> {
    await this.transport.json({ method: "DELETE", path: this.path(template), ...options });
  }

  private path(template: string): string {
    return `/v1/templates/${encodeURIComponent(template)}`;
  }
}

/** Names and times; a value never comes out. */
export class Secrets {
  /** @internal */
  constructor(private readonly transport: Transport) {}

  async list(options: Abortable = {}): Promise<Secret[]> {
    const path = "/v1/secrets";
    return (await this.transport.json<{ secrets: Secret[] }>({ method: "GET", path, ...options })).secrets;
  }

  set(name: string, value: string, options: Abortable = {}): Promise<Secret> {
    return this.transport.json({ method: "PUT", path: this.path(name), json: { value }, ...options });
  }

  async delete(name: string, options: Abortable = {}): Promise<void> {
    await this.transport.json({ method: "DELETE", path: this.path(name), ...options });
  }

  private path(name: string): string {
    return `/v1/secrets/${encodeURIComponent(name)}`;
  }
}
