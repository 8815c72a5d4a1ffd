/** What a sandbox may reach, and what it has tried to. */

import { sandboxPath } from "./paths.js";
import type { Transport } from "./transport.js";
import type { Abortable, NetworkEntry, NetworkPolicy } from "./types.js";

export interface NetworkVerdict {
  allowed: boolean;
  rule: string;
  reason: string;
  treatment: string;
  setsHeaders: string[];
  removesHeaders: string[];
  forwardURL?: string;
  statusCode?: number;
}

export class Network {
  /** @internal */
  constructor(
    private readonly transport: Transport,
    private readonly sandbox: string,
  ) {}

  /** Values of headers are hidden. */
  async get(options: Abortable = {}): Promise<NetworkPolicy> {
    const path = sandboxPath(this.sandbox, "network");
    return (await this.transport.json<{ policy: NetworkPolicy }>({ method: "GET", path, ...options })).policy;
  }

  /** Replaces the policy; it holds when this returns. */
  async set(policy: NetworkPolicy, options: Abortable = {}): Promise<NetworkPolicy> {
    const path = sandboxPath(this.sandbox, "network");
    const json = { policy };
    return (await this.transport.json<{ policy: NetworkPolicy }>({ method: "PUT", path, json, ...options })).policy;
  }

  /** The latest attempts, oldest first. */
  async log(
    options: Abortable & { after?: number; limit?: number; waitSeconds?: number } = {},
  ): Promise<NetworkEntry[]> {
    const { signal, ...query } = options;
    const path = sandboxPath(this.sandbox, "network/log");
    const timeoutMs = ((query.waitSeconds ?? 0) + 60) * 1000;
    const answer = await this.transport.json<{ entries: NetworkEntry[] }>({
      method: "GET",
      path,
      query,
      signal,
      timeoutMs,
    });
    return answer.entries;
  }

  /** What would become of a request, and why. */
  explain(url: string, options: Abortable & { method?: string } = {}): Promise<NetworkVerdict> {
    const path = sandboxPath(this.sandbox, "network/explain");
    const query = { url, method: options.method };
    return this.transport.json({ method: "GET", path, query, signal: options.signal });
  }
}
