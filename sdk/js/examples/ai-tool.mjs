// The AI SDK's sandbox as a tool gets it; put a model of yours where this calls the tool itself.
import { tool } from "ai";
import { sandbox } from "atoll-sandbox/ai";
import { z } from "zod";

const shell = tool({
  description: ({ experimental_sandbox }) => `Runs a shell command. ${experimental_sandbox?.description}`,
  inputSchema: z.object({ command: z.string() }),
  execute: ({ command }, { abortSignal, experimental_sandbox }) => experimental_sandbox.run({ command, abortSignal }),
});

const session = await sandbox({ idleTimeoutSeconds: 600 });
// generateText({ model, tools: { shell }, experimental_sandbox: session, prompt: "..." })
const call = { toolCallId: "1", messages: [], experimental_sandbox: session };
console.log(await shell.execute({ command: "uname -s; pwd" }, call));
await session.delete();
