import { defineEval } from "eve/evals";

const script = (...steps: { name: string; input: unknown }[][]) => "SCRIPT " + JSON.stringify(steps);
const bash = (command: string) => ({ name: "bash", input: { command } });
const probe = (what: string) => ({ name: "probe", input: { what } });

function resultsOf(turn: { message?: string | null }): any[] {
  const message = turn.message ?? "";
  if (!message.startsWith("RESULTS ")) throw new Error(`no results: ${message}`);
  const results = JSON.parse(message.slice("RESULTS ".length));
  for (const { name, isError, output } of results) if (isError) throw new Error(`${name} failed: ${JSON.stringify(output)}`);
  return results.map((result: any) => result.output);
}

function same(actual: unknown, expected: unknown, what: string): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected))
    throw new Error(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

export default defineEval({
  description: "A session on Atoll, end to end",
  async test(t: any) {
    const first = await t.send(script(
      [bash("pwd; cat prepared.txt; test -s session.txt && echo opened; echo AI=$AI_AGENT; cat $HOME/.agents/skills/demo/helper.txt skills/demo/helper.txt 2>/dev/null; true")],
      [{ name: "write_file", input: { filePath: "/workspace/w.txt", content: "hello\n" } }],
      [{ name: "read_file", input: { filePath: "/workspace/w.txt" } }],
      [probe("io")],
      [probe("policy")],
      [bash("nohup sleep 31415 >/dev/null 2>&1 & echo $! > job.pid")],
    ));
    first.expectOk();
    const [shell, , read, io, policy] = resultsOf(first);
    same(shell.stdout, "/workspace\nhello from the workspace\nopened\nAI=eve\nfrom the skill\n", "the prepared sandbox");
    same(read.content, "1: hello", "read_file");
    same(io.missing, null, "a missing file");
    same(io.range, "l2\nl3", "a range of lines");
    same(io.spawn, { o: "1\n2\n3\n", e: "err\n", w: { exitCode: 7 } }, "spawn");
    same(io.killed, { exitCode: 137 }, "kill");
    same(io.removed, "rejected", "removePath of what is not there");
    same(policy, "set", "setNetworkPolicy");

    const session = first.session?.send ? first.session : t;
    const second = await session.send(script(
      [bash("cat w.txt"), bash("echo at the same time")],
      [bash("kill -0 $(cat job.pid) && echo it goes on")],
      [probe("stop")],
      [bash("cat w.txt; echo after the stop")],
      [probe("delete")],
      [bash("ls")],
    ));
    second.expectOk();
    const [one, two, job, stopped, after, deleted, fresh] = resultsOf(second);
    same([one.stdout, two.stdout], ["hello\n", "at the same time\n"], "calls at the same time");
    same(job.stdout, "it goes on\n", "a background job in the next turn");
    same(after.stdout, "hello\nafter the stop\n", `files after stop (${stopped})`);
    same(fresh.stdout.includes("w.txt"), deleted !== "deleted", `files after delete (${deleted})`);
    same(fresh.stdout.includes("prepared.txt"), true, "the template after delete");
  },
});
