// What eve's runtime may do to a backend, and in which order, without eve. Arguments: the package's entries for eve and the client.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { atoll } = await import(pathToFileURL(process.argv[2]));
const { Client } = await import(pathToFileURL(process.argv[3]));
const client = new Client();
const unique = `${process.pid}-Key_${Date.now()}`;
const backend = atoll();
const runtimeContext = { appRoot: "/" };
const templateKey = `tpl-${unique}`;
const long = `/workspace/${"long-name/".repeat(20)}file.txt`;
let bootstraps = 0;
const input = {
  templateKey,
  runtimeContext,
  seedFiles: [
    { path: "/workspace/run.sh", content: "#!/bin/sh\necho seeded\n" },
    { path: "$HOME/.agents/skills/x/SKILL.md", content: Buffer.from("skill") },
    { path: long, content: "deep" },
  ],
  async bootstrap({ use }) {
    ++bootstraps;
    const session = await use({ networkPolicy: "allow-all" });
    assert.equal(session.id, templateKey);
    assert.equal((await session.run({ command: "./run.sh | tee built.txt" })).stdout, "seeded\n");
  },
};

console.log("templates");
const missing = { templateKey, sessionKey: `ses-${unique}`, runtimeContext };
await assert.rejects(backend.create(missing), (error) => {
  assert.deepEqual([error.name, error.backendName, error.templateKey], ["SandboxTemplateNotProvisionedError", "atoll", templateKey]);
  return true;
});
const results = await Promise.all([backend.prewarm(input), backend.prewarm(input)]);
assert.deepEqual(results.map((one) => one.reused).sort(), [false, true]);
assert.deepEqual(await atoll().prewarm(input), { reused: true });
assert.equal(bootstraps, 1);
const failing = { ...input, templateKey: `bad-${unique}`, bootstrap: async ({ use }) => void (await (await use()).run({ command: "exit 1" })) };
await assert.rejects(backend.prewarm(failing), /bootstrap failed/);
const lenient = { ...failing, bootstrap: async ({ use }) => void (await (await use()).run({ command: "exit 2" })) };
assert.deepEqual(await backend.prewarm(lenient), { reused: false });
assert.deepEqual(await atoll({ env: { OTHER: "options" } }).prewarm(input), { reused: false }, "options are a part of it");

console.log("sessions");
const create = { templateKey, sessionKey: `ses-${unique}`, runtimeContext, tags: { agent: "a", channel: "c", sessionId: "s" } };
const handles = await Promise.all([backend, atoll(), atoll()].map((each) => each.create(create)));
const states = await Promise.all(handles.map((handle) => handle.captureState()));
assert.equal(new Set(states.map((state) => state.metadata.sandboxId)).size, 1, "one sandbox for one key");
assert.deepEqual(JSON.parse(JSON.stringify(states[0])), states[0]);
const [handle] = handles;
const { session } = handle;
assert.equal(session.id, create.sessionKey);
const box = await client.get(states[0].metadata.sandboxId);
assert.equal(box.info.metadata.agent, "a");
assert.equal(await box.network.get(), "deny-all", "what the bootstrap might reach is not for sessions");
assert.deepEqual([box.info.maxLifetimeSeconds, box.info.idleTimeoutSeconds], [0, 1800]);
const seen = await session.run({ command: `cat built.txt ${long} $HOME/.agents/skills/x/SKILL.md; echo $AI_AGENT` });
assert.equal(seen.stdout, "seeded\ndeepskilleve\n");
assert.equal((await session.run({ command: "echo $AI_AGENT", env: { AI_AGENT: "mine" } })).stdout, "mine\n");
assert.deepEqual(Object.keys({ ...session }).filter((name) => typeof session[name] !== "function"), ["id"], "methods are its own");
await (await handle.useSessionFn({ networkPolicy: { allow: ["example.org"] } })).writeTextFile({ path: "kept", content: "kept" });
assert.equal((await box.network.explain("https://example.org/")).allowed, true);
await assert.rejects(session.setNetworkPolicy({ allow: { "example.org": [{ nonsense: 1 }] } }), /nonsense|example\.org/);
await session.writeBinaryFile({ path: "binary", content: Buffer.from([0xff, 0xfe]) });
await assert.rejects(session.readTextFile({ path: "binary" }), "text that is none is an error");

console.log("lives");
await handle.stop();
const again = await backend.create({ ...create, existingMetadata: states[0].metadata });
assert.equal(await again.session.readTextFile({ path: "kept" }), "kept");
const lost = await backend.create(create);
assert.equal(await lost.session.readTextFile({ path: "kept" }), "kept", "without its metadata");
await again.shutdown();
await again.dispose();
assert.equal(await lost.session.readTextFile({ path: "kept" }), "kept", "after the end of another process");
await again.delete();
await again.delete({});
const fresh = await backend.create({ ...create, existingMetadata: states[0].metadata });
assert.equal(await fresh.session.readTextFile({ path: "kept" }), null);
assert.equal(await fresh.session.readTextFile({ path: "built.txt" }), "seeded\n");
const plain = await backend.create({ ...create, templateKey: null, sessionKey: `plain-${unique}` });
assert.equal((await plain.session.run({ command: "ls" })).stdout, "");
for (const each of [fresh, plain]) await each.delete();
assert.throws(() => atoll.environment(), /0\.64/);
for (const { snapshotId, tags } of await client.snapshots.list()) if (tags.some((tag) => tag.startsWith("eve-"))) await client.snapshots.delete(snapshotId);
console.log("ok");
