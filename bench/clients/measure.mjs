// Measures a server through the packages that people use; prints one JSON object. Arguments: the entries of E2B's
// package, of its code interpreter, of our client and of its adapter for eve; how many of each.
import { pathToFileURL } from "node:url";

const [e2b, interpreter, client, eve] = await Promise.all(
  process.argv.slice(2, 6).map((path) => import(pathToFileURL(path))),
);
const many = Number(process.argv[6]);
const now = () => performance.now();
const median = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
const p95 = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)];
const details = {};

async function timed(count, each) {
  const times = [];
  for (let i = 0; i < count; i++) times.push(await each(i));
  return times;
}

/** Until the first command has answered; the end is not counted. */
async function firstCommand(command) {
  const begun = now();
  const box = await e2b.Sandbox.create("base");
  await box.commands.run(command);
  const took = now() - begun;
  await box.kill();
  return took;
}

await timed(10, () => firstCommand("true"));
const plain = await timed(many, () => firstCommand("true"));
const node = await timed(many, () => firstCommand("node -v"));
details.tti_p95_ms = p95(plain);

const atoll = new client.Client();
const box = await atoll.create();
await box.exec("node -v");
const own = await timed(20, async () => (await box.exec("node -v")).durationMicroseconds / 1000);
// As the first look at a new sandbox pays for it: nothing of node is mapped there yet.
details.node_start_ms = median(own);

async function burst(count) {
  const begun = now();
  const boxes = await Promise.all(
    Array.from({ length: count }, async () => {
      const one = await e2b.Sandbox.create("base");
      await one.commands.run("true");
      return one;
    }),
  );
  const took = now() - begun;
  await Promise.all(boxes.map((one) => one.kill()));
  return took;
}
const bursts = await timed(3, () => burst(100));

const backend = eve.atoll();
const create = { templateKey: null, sessionKey: `bench-${process.pid}`, runtimeContext: { appRoot: "/" } };
const handle = await backend.create(create);
const state = await handle.captureState();
const resumes = await timed(many, async () => {
  const begun = now();
  await eve.atoll().create({ ...create, existingMetadata: state.metadata });
  return now() - begun;
});
await handle.delete();

const firsts = await timed(20, async () => {
  const fresh = await atoll.create();
  const begun = now();
  await fresh.runCode("python", "1+1");
  const took = now() - begun;
  await fresh.delete();
  return took;
});
await box.runCode("python", "import json\nx = list(range(100000))");
const cells = await timed(many, async () => {
  const begun = now();
  const { results } = await box.runCode("python", "1+1");
  if (results[0].value !== "2") throw new Error("it cannot count");
  return now() - begun;
});
const forks = await timed(20, async (i) => {
  const begun = now();
  const branch = await box.codeContexts.fork("python-default", `f${i}`);
  const took = now() - begun;
  const { results } = await box.runCode("python", "len(x)", { sessionId: branch.sessionId });
  if (results[0].value !== "100000") throw new Error("the branch lacks the variables");
  await box.codeContexts.remove(branch);
  return took;
});
await box.delete();

const notebook = await interpreter.Sandbox.create();
await notebook.runCode("1");
details.e2b_runcode_ms = median(
  await timed(many, async () => {
    const begun = now();
    await notebook.runCode("1+1");
    return now() - begun;
  }),
);
await notebook.kill();

const result = {
  tti_ms: median(plain),
  tti_node_ms: median(node),
  burst100_wall_ms: median(bursts),
  eve_resume_ms: median(resumes),
  first_runcode_ms: median(firsts),
  runcode_ms: median(cells),
  kernel_fork_ms: median(forks),
};
console.log(JSON.stringify({ ...result, details }));
