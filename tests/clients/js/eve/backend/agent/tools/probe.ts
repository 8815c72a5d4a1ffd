import { defineTool } from "eve/tools";
import { z } from "zod";
import { POLICY, exercise } from "../../lib/io";

export default defineTool({
  description: "Uses the session from authored code.",
  inputSchema: z.object({ what: z.string() }),
  async execute({ what }, ctx) {
    const session: any = await ctx.getSandbox();
    if (what === "io") return exercise(session);
    if (what === "policy") return session.setNetworkPolicy(POLICY).then(() => "set");
    if (what === "stop") return session.stop ? session.stop().then(() => "stopped") : "not in this version";
    if (what === "delete") return session.delete ? session.delete().then(() => "deleted") : "not in this version";
    throw new Error(`${what}?`);
  },
});
