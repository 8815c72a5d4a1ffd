import { atoll } from "atoll-sandbox/eve";
import { defineSandbox } from "eve/sandbox";

export const environment = atoll.environment({
  prepare: async (sandbox) => {
    await sandbox.run({ command: "sh scripts/hello.sh > prepared.txt" });
  },
});

export default defineSandbox(async ({ session }) => {
  const sandbox = await environment.open({ networkPolicy: "deny-all" });
  await sandbox.writeTextFile({ path: "session.txt", content: session.id });
  return sandbox;
});
