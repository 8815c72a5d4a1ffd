/** The harness's words for a network policy and for headers that are set on the way out, as one policy of the server. */

import type { NetworkPolicy, NetworkRule, RequestMatch } from "./types.js";

export type HarnessNetworkPolicy =
  | { mode: "allow-all" }
  | { mode: "deny-all" }
  | {
      mode: "custom";
      allowedHosts?: readonly string[];
      allowedCIDRs?: readonly string[];
      deniedCIDRs?: readonly string[];
    };

export interface HarnessRequestTransformation {
  readonly match: { readonly host: string } & RequestMatch;
  readonly transform: { readonly headers: Readonly<Record<string, string>> };
}

/** Headers are set for hosts that the policy lets through; they never open a host. */
export function combinedPolicy(
  policy: HarnessNetworkPolicy,
  transformations: readonly HarnessRequestTransformation[],
): NetworkPolicy {
  if (policy.mode === "deny-all") return "deny-all";
  if (policy.mode === "allow-all" && transformations.length === 0) return "allow-all";
  const hosts = policy.mode === "custom" ? (policy.allowedHosts ?? []) : ["*"];
  const allow: Record<string, NetworkRule[]> = Object.fromEntries(hosts.map((host) => [host, []]));
  for (const { match, transform } of transformations) {
    const { host, ...rest } = match;
    if (!hosts.some((pattern) => covers(pattern, host))) continue;
    const rule = { ...(Object.keys(rest).length > 0 ? { match: rest } : {}), transform: [{ headers: transform.headers }] };
    (allow[host] ??= []).push(rule);
  }
  const { allowedCIDRs, deniedCIDRs } = policy.mode === "custom" ? policy : {};
  const subnets = { ...(allowedCIDRs ? { allow: allowedCIDRs } : {}), ...(deniedCIDRs ? { deny: deniedCIDRs } : {}) };
  return { allow, ...(Object.keys(subnets).length > 0 ? { subnets } : {}) };
}

function covers(pattern: string, host: string): boolean {
  if (pattern === "*" || pattern === host) return true;
  return pattern.startsWith("*.") && host.endsWith(pattern.slice(1));
}
