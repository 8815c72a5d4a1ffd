import type { Experimental_SandboxSession } from "ai";
import { sandbox } from "atoll-sandbox/ai";

export const session: Experimental_SandboxSession = await sandbox({ template: "base", network: "deny-all" });
export const writable: WritableStream<Uint8Array> = (await session.spawn({ command: "cat", stdin: true })).stdin;
