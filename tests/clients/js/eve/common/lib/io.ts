/** Every way in and out of a session, from authored code. */
export async function exercise(session: any): Promise<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  result.missing = await session.readTextFile({ path: "nowhere/x.txt" });
  await session.writeTextFile({ path: "deep/a/b.txt", content: "l1\r\nl2\nl3" });
  result.range = await session.readTextFile({ path: "deep/a/b.txt", startLine: 2, endLine: 99 });
  await session.removePath({ path: "deep", recursive: true });
  await session.removePath({ path: "deep", force: true });
  result.removed = await session.removePath({ path: "deep" }).then(() => "removed", () => "rejected");
  const script = "for i in 1 2 3; do echo $i; sleep 0.05; done; echo err >&2; exit 7";
  const process = await session.spawn({ command: script });
  const [o, e, w] = await Promise.all([new Response(process.stdout).text(), new Response(process.stderr).text(), process.wait()]);
  result.spawn = { o, e, w };
  const sleeper = await session.spawn({ command: "sleep 600" });
  await sleeper.kill();
  result.killed = await sleeper.wait();
  return result;
}

/** Injects a header on the way to a host that tests have. */
export const POLICY = {
  allow: { "api.allowed.test": [{ transform: [{ headers: { Authorization: "Bearer injected" } }] }] },
};
