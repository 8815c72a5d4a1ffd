/** A job per sandbox: claim it with a manifest, follow it, release it. Namespaces are a part of sandboxes' names. */

import { fingerprint } from "./blueprint.js";
import type { Client } from "./client.js";
import { AtollError, NotFoundError, TimeoutError } from "./errors.js";
import { jobOf } from "./manifest.js";
import type { Process } from "./process.js";
import type { Sandbox } from "./sandbox.js";
import type { ProcessInfo } from "./types.js";

export interface SandboxStatus {
  phase: "Pending" | "Running" | "Succeeded" | "Failed";
  complete: boolean;
  active: number;
  succeeded: number;
  failed: number;
  reason?: string;
  message?: string;
}

export interface SandboxOrchestrator<Clients = Client> {
  /** Makes the sandbox and starts its command; ConflictError where the name is taken. */
  claim(clients: Clients, namespace: string, manifest: Record<string, unknown>): Promise<{ uid: string }>;
  getStatus(clients: Clients, namespace: string, name: string): Promise<SandboxStatus>;
  /** The sandbox's id, or null where there is none. */
  findPod(clients: Clients, namespace: string, name: string): Promise<string | null>;
  /** All of the output, from the beginning, until the command has ended. */
  streamLogs(
    clients: Clients,
    namespace: string,
    podName: string,
    onChunk: (stream: "stdout" | "stderr", text: string) => Promise<void>,
  ): Promise<void>;
  /** With everything in it. One that is gone already is no error. */
  release(clients: Clients, namespace: string, name: string): Promise<void>;
  waitForCompletion(
    clients: Clients,
    namespace: string,
    name: string,
    options: { timeoutMs: number; pollMs?: number },
  ): Promise<SandboxStatus>;
  pause(clients: Clients, namespace: string, name: string): Promise<void>;
  resume(clients: Clients, namespace: string, name: string): Promise<void>;
}

// What says in a sandbox's metadata which of its processes is the job.
const PID = "orchestrator.pid";

export function orchestrator(): SandboxOrchestrator {
  return {
    async claim(client, namespace, manifest) {
      const job = jobOf(manifest);
      const metadata = { ...job.labels, namespace, name: job.name };
      const box = await client.create({ ...job.create, name: boxName(namespace, job.name), metadata });
      try {
        const process = await box.spawn(job.command, job.options);
        await box.update({ metadata: { ...metadata, [PID]: String(process.pid) } });
      } catch (error) {
        await box.delete();
        throw error;
      }
      return { uid: box.id };
    },
    async getStatus(client, namespace, name) {
      return statusOf(await client.get(boxName(namespace, name)));
    },
    async findPod(client, namespace, name) {
      try {
        return (await client.get(boxName(namespace, name))).id;
      } catch (error) {
        if (error instanceof NotFoundError) return null;
        throw error;
      }
    },
    async streamLogs(client, _namespace, podName, onChunk) {
      const process = await jobProcess(await client.get(podName));
      if (!process) throw new AtollError(`${podName} has not started its command yet`, { code: "INVALID_STATE" });
      for await (const event of process.logs())
        if (event.type === "stdout" || event.type === "stderr") await onChunk(event.type, event.data);
    },
    async release(client, namespace, name) {
      try {
        await client.delete(boxName(namespace, name));
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
      }
    },
    async waitForCompletion(client, namespace, name, { timeoutMs }) {
      const box = await client.get(boxName(namespace, name));
      const process = await jobProcess(box);
      if (process) {
        try {
          return fromProcess(await process.wait({ timeoutMs }));
        } catch (error) {
          if (error instanceof TimeoutError)
            throw new TimeoutError(`${namespace}/${name} is not complete after ${timeoutMs} ms`, { code: "TIMEOUT" });
          if (!(error instanceof AtollError)) throw error;
        }
      }
      // It was stopped or lost its process: its status says what became of it.
      await box.refresh();
      return statusOf(box);
    },
    async pause(client, namespace, name) {
      await client.sandbox(boxName(namespace, name)).pause();
    },
    async resume(client, namespace, name) {
      await client.sandbox(boxName(namespace, name)).resume();
    },
  };
}

/** The same pair gives the same name, and no two pairs do. */
function boxName(namespace: string, name: string): string {
  return `job-${fingerprint(namespace, name)}`;
}

async function jobProcess(box: Sandbox): Promise<Process | null> {
  const pid = Number(box.info?.metadata[PID]);
  return Number.isInteger(pid) && pid > 0 ? box.process(pid) : null;
}

async function statusOf(box: Sandbox): Promise<SandboxStatus> {
  const info = box.info!;
  if (info.status === "failed" || info.status === "stopped")
    return ended("Failed", info.status === "failed" ? "SandboxFailed" : "SandboxStopped", info.error ?? info.reason);
  if (info.status === "paused") return { ...RUNNING, reason: "Paused" };
  try {
    const process = await jobProcess(box);
    return process ? fromProcess(process.info) : { ...RUNNING, phase: "Pending", active: 0 };
  } catch (error) {
    if (error instanceof NotFoundError) return ended("Failed", "ProcessLost", error.message);
    throw error;
  }
}

const RUNNING: SandboxStatus = { phase: "Running", complete: false, active: 1, succeeded: 0, failed: 0 };

function fromProcess(info: ProcessInfo): SandboxStatus {
  if (info.running) return RUNNING;
  if (info.exitCode === 0) return ended("Succeeded");
  if (info.timedOut) return ended("Failed", "DeadlineExceeded", "its time was up");
  return ended("Failed", "Error", `exit code ${info.exitCode}`);
}

function ended(phase: "Succeeded" | "Failed", reason?: string, message?: string): SandboxStatus {
  const succeeded = phase === "Succeeded" ? 1 : 0;
  return {
    phase,
    complete: true,
    active: 0,
    succeeded,
    failed: 1 - succeeded,
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
  };
}
