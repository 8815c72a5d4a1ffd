/**
 * Sandboxes prepared once and used often: a snapshot with a tag that is a hash of what it was made of. Everyone who may
 * create sandboxes may make one, and it appears whole or not at all.
 */

import { createHash } from "node:crypto";
import type { Client } from "./client.js";
import { NotFoundError } from "./errors.js";
import type { Sandbox } from "./sandbox.js";
import type { CreateOptions } from "./types.js";

export interface Blueprint {
  tag: string;
  /** What its sandbox is made with. */
  create: CreateOptions;
  /** What is done to it before it is kept. */
  prepare(box: Sandbox): Promise<void>;
}

/** A short name for any JSON value; functions count with their text. */
export function fingerprint(...parts: unknown[]): string {
  const text = JSON.stringify(parts, (_, value: unknown) => {
    if (typeof value === "function") return `function ${String(value)}`;
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
    return value;
  });
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

export async function isBuilt(client: Client, tag: string): Promise<boolean> {
  try {
    await client.snapshots.get(tag);
    return true;
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}

const inFlight = new WeakMap<Client, Map<string, Promise<boolean>>>();

/** Answers whether it was there already. Callers in one process at the same time share one build. */
export function build(client: Client, blueprint: Blueprint): Promise<boolean> {
  const builds = inFlight.get(client) ?? new Map<string, Promise<boolean>>();
  inFlight.set(client, builds);
  const running = builds.get(blueprint.tag);
  if (running) return running.then(() => true);
  const building = buildOnce(client, blueprint).finally(() => builds.delete(blueprint.tag));
  builds.set(blueprint.tag, building);
  return building;
}

// What a build that its process did not finish leaves behind ends by itself.
const BUILD_SECONDS = 3600;

async function buildOnce(client: Client, { tag, create, prepare }: Blueprint): Promise<boolean> {
  if (await isBuilt(client, tag)) return true;
  const box = await client.create({ ...create, maxLifetimeSeconds: BUILD_SECONDS, deleteAfterStoppedSeconds: 1 });
  try {
    await prepare(box);
    if (await isBuilt(client, tag)) return true; // Another process was quicker.
    await box.snapshot({ tags: [tag], message: "prepared by atoll-sandbox" });
    return false;
  } finally {
    await box.delete().catch(() => undefined); // Its lifetime ends it too.
  }
}
