import type { HarnessV1NetworkSandboxSession, HarnessV1SandboxProvider } from "@ai-sdk/harness";
import { harness } from "atoll-sandbox/ai";

export const provider: HarnessV1SandboxProvider = harness({ ports: [8080], networkPolicy: { mode: "deny-all" } });
export const session: HarnessV1NetworkSandboxSession = await provider.createSession({ sessionId: "one" });
