import { atoll } from "atoll-sandbox/eve";
import { defineSandbox } from "eve/sandbox";

export default defineSandbox({
  backend: atoll(),
  revalidationKey: () => "1",
  async bootstrap({ use }) {
    const sandbox = await use();
    await sandbox.run({ command: "sh scripts/hello.sh > prepared.txt" });
  },
  async onSession({ use, ctx }) {
    const sandbox = await use({ networkPolicy: "deny-all" });
    await sandbox.writeTextFile({ path: "session.txt", content: ctx.session.id });
  },
});
