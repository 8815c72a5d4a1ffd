/** What of a Kubernetes Job or Pod a sandbox can be. What it cannot is refused by name. */

import { ValidationError } from "./errors.js";
import type { Command, CommandOptions } from "./sandbox.js";
import type { CreateOptions, Resources } from "./types.js";

export interface Job {
  name: string;
  labels: Record<string, string>;
  create: CreateOptions;
  command: Command;
  options: CommandOptions;
}

type Fields = Record<string, unknown>;

export function jobOf(manifest: Fields): Job {
  const kind = manifest.kind ?? "Job";
  if (kind !== "Job" && kind !== "Pod") throw refused("kind", `${String(kind)} is neither Job nor Pod`);
  const metadata = fields(manifest.metadata, "metadata");
  const name = metadata.name;
  if (typeof name !== "string" || name === "") throw refused("metadata.name", "is missing");
  const spec = fields(manifest.spec, "spec");
  const template = kind === "Job" ? fields(spec.template, "spec.template") : manifest;
  const at = kind === "Job" ? "spec.template.spec" : "spec";
  if (kind === "Job") only(spec, "spec", ["template", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]);
  if (spec.backoffLimit !== undefined && spec.backoffLimit !== 0)
    throw refused("spec.backoffLimit", "a command runs once: it must be 0");
  const pod = fields(template.spec, at);
  only(pod, at, ["containers", "restartPolicy", "activeDeadlineSeconds"]);
  if (pod.restartPolicy !== undefined && pod.restartPolicy !== "Never")
    throw refused(`${at}.restartPolicy`, "a command runs once: it must be Never");
  const containers = pod.containers;
  if (!Array.isArray(containers) || containers.length !== 1) throw refused(`${at}.containers`, "must be exactly one");
  const container = fields(containers[0], `${at}.containers[0]`);
  const deadline = seconds(spec.activeDeadlineSeconds ?? pod.activeDeadlineSeconds, "activeDeadlineSeconds");
  const ttl = seconds(spec.ttlSecondsAfterFinished, "spec.ttlSecondsAfterFinished");
  return {
    name,
    labels: strings(metadata.labels, "metadata.labels"),
    ...containerOf(container, `${at}.containers[0]`, deadline, ttl),
  };
}

function containerOf(container: Fields, at: string, deadline: number | undefined, ttl: number | undefined) {
  only(container, at, ["name", "image", "command", "args", "env", "workingDir", "resources"]);
  const words = [...list(container.command, `${at}.command`), ...list(container.args, `${at}.args`)];
  const [program, ...rest] = words;
  if (program === undefined) throw refused(`${at}.command`, "is missing");
  const { image, workingDir } = container;
  if (image !== undefined && typeof image !== "string") throw refused(`${at}.image`, "is not a text");
  if (workingDir !== undefined && typeof workingDir !== "string") throw refused(`${at}.workingDir`, "is not a text");
  const create: CreateOptions = {
    ...(image === undefined ? {} : { template: image }),
    env: environment(container.env, `${at}.env`),
    resources: limits(container.resources, `${at}.resources`),
    ...(deadline !== undefined && ttl !== undefined ? { maxLifetimeSeconds: deadline + ttl } : {}),
  };
  const command: Command = [program, ...rest];
  const options = {
    ...(workingDir === undefined ? {} : { cwd: workingDir }),
    ...(deadline === undefined ? {} : { timeoutMs: deadline * 1000 }),
  };
  return { create, command, options };
}

function environment(value: unknown, at: string): Record<string, string> {
  const result: Record<string, string> = {};
  if (value === undefined) return result;
  if (!Array.isArray(value)) throw refused(at, "is not a list");
  value.forEach((item, index) => {
    const entry = fields(item, `${at}[${index}]`);
    only(entry, `${at}[${index}]`, ["name", "value"]);
    if (typeof entry.name !== "string") throw refused(`${at}[${index}].name`, "is missing");
    result[entry.name] = String(entry.value ?? "");
  });
  return result;
}

function limits(value: unknown, at: string): Resources {
  if (value === undefined) return {};
  const given = fields(value, at);
  only(given, at, ["limits", "requests"]);
  const limit = given.limits === undefined ? {} : fields(given.limits, `${at}.limits`);
  only(limit, `${at}.limits`, ["cpu", "memory", "ephemeral-storage"]);
  const { cpu, memory, "ephemeral-storage": disk } = limit;
  return {
    ...(cpu === undefined ? {} : { cpuCores: quantity(cpu, `${at}.limits.cpu`) }),
    ...(memory === undefined ? {} : { memoryMB: Math.ceil(quantity(memory, `${at}.limits.memory`) / 2 ** 20) }),
    ...(disk === undefined ? {} : { diskGB: quantity(disk, `${at}.limits.ephemeral-storage`) / 2 ** 30 }),
  };
}

const UNITS: Record<string, number> = {
  "": 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40,
};

function quantity(value: unknown, at: string): number {
  const parts = /^([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(String(value));
  if (!parts) throw refused(at, `${String(value)} is not a quantity such as 500m or 2Gi`);
  return Number(parts[1]) * UNITS[parts[2] ?? ""]!;
}

function seconds(value: unknown, at: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0) throw refused(at, "is not a number of seconds");
  return value;
}

function list(value: unknown, at: string): string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) throw refused(at, "is not a list of texts");
  return value as string[];
}

function strings(value: unknown, at: string): Record<string, string> {
  if (value === undefined) return {};
  return Object.fromEntries(Object.entries(fields(value, at)).map(([name, item]) => [name, String(item)]));
}

function fields(value: unknown, at: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refused(at, "is missing or no object");
  return value as Fields;
}

function only(value: Fields, at: string, known: readonly string[]): void {
  const other = Object.keys(value).find((name) => !known.includes(name));
  if (other !== undefined) throw refused(`${at}.${other}`, "is not something a sandbox has");
}

function refused(field: string, why: string): ValidationError {
  return new ValidationError(`${field}: ${why}`, { code: "VALIDATION_ERROR", fields: [field] });
}
