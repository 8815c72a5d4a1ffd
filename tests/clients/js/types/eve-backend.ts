import { atoll, type UseOptions } from "atoll-sandbox/eve";
import { defineSandbox, type SandboxBackend } from "eve/sandbox";

export const backend: SandboxBackend<UseOptions, UseOptions> = atoll({ template: "base", networkPolicy: "deny-all" });

export default defineSandbox({
  backend: atoll(),
  async bootstrap({ use }) {
    await (await use({ networkPolicy: "allow-all" })).run({ command: "true" });
  },
});
