// The AI SDK with a scripted model and tools that use the sandbox; then the members of a session one by one, and the harness.
import assert from "node:assert/strict";
import * as ai from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
import { Client } from "atoll-sandbox";
import { harness, sandbox } from "atoll-sandbox/ai";

const step = (name) => console.log(name);
const text = (stream) => new Response(stream).text();
const box = await sandbox({ metadata: { test: "ai" } });

step("a model's tools");
const calls = [
  { toolName: "shell", input: { command: "echo hi > a.txt; pwd; exit 3" } },
  { toolName: "read", input: { path: "a.txt" } },
];
let turn = 0;
const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const model = new MockLanguageModelV4({
  doGenerate: async () => {
    const call = calls[turn++];
    const content = call
      ? [{ type: "tool-call", toolCallId: `call-${turn}`, toolName: call.toolName, input: JSON.stringify(call.input) }]
      : [{ type: "text", text: "done" }];
    return { content, finishReason: { unified: call ? "tool-calls" : "stop", raw: undefined }, usage, warnings: [] };
  },
});
const tools = {
  shell: ai.tool({
    description: ({ experimental_sandbox }) => `Runs a command. ${experimental_sandbox?.description}`,
    inputSchema: z.object({ command: z.string() }),
    execute: ({ command }, { abortSignal, experimental_sandbox }) => experimental_sandbox.run({ command, abortSignal }),
  }),
  read: ai.tool({
    description: "Reads a file.",
    inputSchema: z.object({ path: z.string() }),
    execute: ({ path }, { experimental_sandbox }) => experimental_sandbox.readTextFile({ path }),
  }),
};
const stopWhen = (ai.isStepCount ?? ai.stepCountIs)(5);
const result = await ai.generateText({ model, tools, stopWhen, experimental_sandbox: box, prompt: "go" });
assert.equal(result.text, "done");
const outputs = result.steps.flatMap((each) => each.toolResults.map((one) => one.output));
assert.deepEqual(outputs, [{ exitCode: 3, stdout: "/workspace\n", stderr: "" }, "hi\n"]);
assert.match(model.doGenerateCalls[0].tools[0].description, /Linux sandbox/);

step("files");
const path = "deep/er/file.txt";
await box.writeTextFile({ path, content: "one\r\ntwo\nthree\rfour" });
assert.equal(await box.readTextFile({ path, startLine: 2, endLine: 3 }), "two\nthree\r");
assert.equal(await box.readTextFile({ path, startLine: 4, endLine: 99 }), "four");
assert.equal(await box.readTextFile({ path, startLine: 50 }), "");
await assert.rejects(box.readTextFile({ path, startLine: 0 }), /positive integer/);
await assert.rejects(box.readTextFile({ path, startLine: 3, endLine: 2 }), /must not be greater/);
for (const encoding of ["latin1", "base64", "utf16le"]) {
  const content = encoding === "base64" ? "aMOp" : "hé";
  await box.writeTextFile({ path: "encoded", content, encoding });
  assert.equal(await box.readTextFile({ path: "encoded", encoding }), content);
}
await box.writeBinaryFile({ path: "/tmp/bytes", content: new Uint8Array([0, 255, 10]) });
assert.deepEqual([...(await box.readBinaryFile({ path: "/tmp/bytes" }))], [0, 255, 10]);
await box.writeFile({ path: "streamed", content: new Blob(["stream"]).stream() });
assert.equal(await text(await box.readFile({ path: "streamed" })), "stream");
for (const missing of ["nowhere", "deep/er/file.txt/below"]) {
  assert.equal(await box.readFile({ path: missing }), null);
  assert.equal(await box.readBinaryFile({ path: missing }), null);
  assert.equal(await box.readTextFile({ path: missing }), null);
  assert.equal(await box.stat({ path: missing }), null);
  assert.equal(await box.deleteFile({ path: missing }), false);
}
await assert.rejects(box.readFile({ path: "deep" }));
await assert.rejects(box.writeTextFile({ path: "deep", content: "x" }));
await box.run({ command: "ln -s deep link; ln -s deep/er/file.txt file-link; ln -s nowhere dangling; mkfifo pipe; touch .hidden" });
assert.deepEqual(await box.stat({ path }), { type: "file", size: 19 });
assert.equal((await box.stat({ path: "link" })).type, "directory");
assert.deepEqual(await box.stat({ path: "file-link" }), { type: "file", size: 19 });
assert.equal(await box.stat({ path: "dangling" }), null);
assert.equal((await box.stat({ path: "pipe" })).type, "other");
const listed = Object.fromEntries((await box.listDirectory({ path: "." })).map(({ name, type }) => [name, type]));
assert.deepEqual(
  [listed.deep, listed.link, listed.streamed, listed.pipe, listed[".hidden"]],
  ["directory", "symlink", "file", "other", "file"],
);
assert.equal(await box.listDirectory({ path: "nowhere" }), null);
await assert.rejects(box.listDirectory({ path: "streamed" }));
assert.deepEqual([await box.deleteFile({ path: "file-link" }), await box.deleteFile({ path: "file-link" })], [true, false]);
assert.ok(await box.stat({ path }), "the link's target is still there");
await assert.rejects(box.deleteFile({ path: "deep" }));

step("commands");
assert.equal((await box.run({ command: "pwd", workingDirectory: "deep/er" })).stdout, "/workspace/deep/er\n");
assert.equal((await box.run({ command: "echo $COLOUR", env: { COLOUR: "blue" } })).stdout, "blue\n");
assert.equal((await box.run({ command: "printf 'a\\377b'" })).stdout, "a\ufffdb");
assert.equal((await box.run({ command: "sleep 0.3; head -c 50000000 /dev/zero | tr '\\0' x" })).stdout.length, 50_000_000);
const process_ = await box.spawn({ command: "cat; echo err >&2; exit 7", stdin: true });
const writer = process_.stdin.getWriter();
await writer.write(new TextEncoder().encode("in"));
await writer.close();
assert.deepEqual([await text(process_.stdout), await text(process_.stderr), await process_.wait()], ["in", "err\n", { exitCode: 7 }]);
const plain = await box.spawn({ command: "cat; sleep 600" });
assert.equal("stdin" in plain, false);
await plain.kill();
await plain.kill();
assert.deepEqual(await plain.wait(), { exitCode: 137 });
const reason = new Error("enough");
await assert.rejects(box.spawn({ command: "touch never", abortSignal: AbortSignal.abort(reason) }), (error) => error === reason);
assert.equal(await box.stat({ path: "never" }), null);
const control = new AbortController();
const doomed = await box.spawn({ command: "setsid sleep 4242 & sleep 4343", abortSignal: control.signal });
control.abort(reason);
await assert.rejects(doomed.wait(), (error) => error === reason);
assert.doesNotMatch((await box.run({ command: "cat /proc/[0-9]*/cmdline | tr '\\0' ' '" })).stdout, /sleep 4[23]4[23]/);
await box.delete();
await assert.rejects(box.readFile({ path: "x" }), /sandbox/, "a sandbox that is gone is no missing file");

step("harness");
const provider = harness({ ports: [8123] });
let first = 0;
const onFirstCreate = async (session) => { ++first; await session.writeTextFile({ path: "first", content: "once" }); };
const identity = `id-${process.pid}-${Date.now()}`;
const one = await provider.createSession({ sessionId: "one", identity, onFirstCreate });
const two = await provider.createSession({ sessionId: "two", identity, onFirstCreate });
assert.equal(first, 1);
assert.notEqual(one.id, two.id);
assert.equal(await two.readTextFile({ path: "first" }), "once");
assert.equal(one.defaultWorkingDirectory, "/workspace");
await one.spawn({ command: "python3 -m http.server 8123" });
const { url } = await one.getPortEndpoint({ port: 8123 });
let page;
for (const end = Date.now() + 20_000; page === undefined; ) {
  page = await fetch(`${url}/first`, { signal: AbortSignal.timeout(2000) }).then((answer) => answer.text()).catch((error) => { if (Date.now() > end) throw error; });
}
assert.equal(page, "once");
await assert.rejects(one.getPortEndpoint({ port: 1 }), /not exposed/);
await one.setNetworkPolicy({ mode: "custom", allowedHosts: ["*.example.org"], deniedCIDRs: ["192.0.2.0/24"] });
await one.addRequestTransformations([
  { match: { host: "api.example.org" }, transform: { headers: { Authorization: "Bearer x" } } },
  { match: { host: "elsewhere.net" }, transform: { headers: { Authorization: "Bearer y" } } },
]);
const client = new Client();
const native = await client.get(one.id);
assert.deepEqual((await native.network.explain("https://api.example.org/")).setsHeaders.length, 1);
assert.equal((await native.network.explain("https://www.example.org/")).allowed, true);
assert.equal((await native.network.explain("https://elsewhere.net/")).allowed, false);
assert.deepEqual(Object.keys(one.restricted()).filter((name) => /stop|destroy|Network|Port/.test(name)), []);
await one.writeTextFile({ path: "kept", content: "kept" });
await one.stop();
const again = await provider.resumeSession({ sessionId: "one" });
assert.equal(await again.readTextFile({ path: "kept" }), "kept");
await again.destroy();
await again.destroy();
await two.destroy();
await assert.rejects(provider.resumeSession({ sessionId: "one" }), /no sandbox/);
for (const snapshot of await client.snapshots.list()) if (snapshot.tags.some((tag) => tag.startsWith("harness-"))) await client.snapshots.delete(snapshot.snapshotId);
console.log("ok");
