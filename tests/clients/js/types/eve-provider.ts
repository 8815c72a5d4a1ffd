import { atoll } from "atoll-sandbox/eve";
import { defineSandbox } from "eve/sandbox";

export const environment = atoll.environment({ template: "base", prepare: async (one) => void (await one.run({ command: "true" })) });

export default defineSandbox(async () => {
  const sandbox = await environment.open({ networkPolicy: { allow: { "example.org": [] } } });
  await sandbox.setNetworkPolicy("deny-all");
  return sandbox;
});
