// The whole surface of the package, over the socket or TCP as the environment says. Argument: the package's entry.
import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { pathToFileURL } from "node:url";

const {
  Client, AtollError, AuthError, ConflictError, NotFoundError, TemplateNotFoundError, TimeoutError, TransportError, ValidationError,
} = await import(pathToFileURL(process.argv[2]));
const client = new Client();
const unique = `js-${process.pid}`;
const step = (name) => console.log(name);
const bytesOf = async (stream) => Buffer.from(await new Response(stream).arrayBuffer());

step("sandboxes");
const box = await client.create({ name: unique, env: { COLOUR: "green" }, metadata: { who: unique }, resources: { memoryMB: 256 } });
assert.equal(box.info.status, "running");
assert.equal(box.info.metadata.who, unique);
assert.equal((await client.get(unique)).id, box.id);
assert.deepEqual((await client.list({ metadata: { who: unique } })).map((one) => one.id), [box.id]);
assert.deepEqual(await client.list({ status: "failed", metadata: { who: unique } }), []);
const [one, two] = await Promise.all([1, 2].map(() => client.getOrCreate({ name: `${unique}-once` })));
assert.equal(one.id, two.id);
assert.equal((await box.update({ metadata: { who: unique, more: "yes" } })).metadata.more, "yes");
assert.equal((await box.usage()).sandboxId, box.id);

step("commands");
const ran = await box.exec("echo $COLOUR; echo bad >&2; exit 3");
assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr], [3, "green\n", "bad\n"]);
assert.equal((await box.exec(["printf", "%s", "a b; $HOME"])).stdout, "a b; $HOME");
assert.equal((await box.exec("pwd; echo $X", { cwd: "/tmp", env: { X: "y" } })).stdout, "/tmp\ny\n");
const late = await box.exec("echo begun; sleep 60", { timeoutMs: 300 });
assert.deepEqual([late.timedOut, late.exitCode, late.stdout], [true, 124, "begun\n"]);
const much = "head -c 30000000 /dev/zero | tr '\\0' x";
for (const options of [{}, { onStdout: () => undefined }]) {
  const result = await box.exec(much, options);
  assert.equal(result.stdout.length + result.stdoutLost, 30_000_000);
}
const unhurried = await box.exec(`sleep 0.5; ${much}`, { onStdout: () => undefined });
assert.deepEqual([unhurried.stdout.length, unhurried.stdoutLost], [30_000_000, 0], "who reads holds the writer back");

step("code");
await box.runCode("python", "x = 6", { sessionId: "s" });
assert.deepEqual((await box.runCode("python", "x * 7", { sessionId: "s" })).results, [{ type: "text", value: "42" }]);
assert.equal((await box.runCode("python", "1/0")).error.name, "ZeroDivisionError");
assert.equal((await box.runCode("bash", "echo $A", { env: { A: "b" } })).stdout, "b\n");
const branch = await box.codeContexts.fork("python-s", "t");
assert.equal((await box.runCode("python", "x", { sessionId: "t" })).results[0].value, "6");
await box.codeContexts.restart(branch);
await box.codeContexts.remove(branch);
const place = await box.codeContexts.create({ language: "python", cwd: "/tmp" });
assert.ok((await box.codeContexts.list()).some((one) => one.id === place.id && one.cwd === "/tmp"));

const pieces = [];
const streamed = await box.exec("for i in 1 2 3; do echo $i; sleep 0.1; done; printf é >&2", { onStdout: (text) => pieces.push(text) });
assert.equal(streamed.stdout, "1\n2\n3\n");
assert.equal(streamed.stderr, "é");
assert.ok(pieces.length >= 2, "it came in pieces");

step("aborts");
const reason = new Error("enough");
await assert.rejects(box.exec("true", { signal: AbortSignal.abort(reason) }), (error) => error === reason);
const stop = new AbortController();
const aborted = box.exec("setsid sleep 4242 & echo up; sleep 4343", { signal: stop.signal, onStdout: () => stop.abort(reason) });
await assert.rejects(aborted, (error) => error === reason);
const left = async () => (await box.exec("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true")).stdout;
assert.doesNotMatch(await left(), /4242|4343/, "the whole tree is gone, also what left its session");
const background = await box.exec("sleep 3131 & echo started", { signal: new AbortController().signal });
assert.equal(background.stdout, "started\n");
assert.match(await left(), /3131/, "what a command leaves behind goes on");

step("processes");
const process_ = await box.spawn("echo first; sleep 0.2; echo second >&2; exit 5");
const seen = [];
for await (const event of process_.logs()) seen.push(event.type === "exit" ? `exit ${event.process.exitCode}` : `${event.type} ${event.data}`);
assert.deepEqual(seen, ["stdout first\n", "stderr second\n", "exit 5"]);
assert.equal((await process_.wait()).exitCode, 5);
assert.equal((await box.process(process_.pid)).info.running, false);
const sleeper = await box.spawn("sleep 600");
assert.ok((await box.processes()).some((other) => other.pid === sleeper.pid));
await assert.rejects(sleeper.wait({ timeoutMs: 50 }), TimeoutError);
await sleeper.kill();
assert.equal((await sleeper.wait()).exitCode, 137);
await sleeper.kill();
const binary = await box.spawn("head -c 1000000 /dev/urandom | tee /tmp/random");
const random = await bytesOf(binary.output("stdout"));
assert.ok(random.equals(await box.files.read("/tmp/random")));
const cat = await box.spawn("cat; echo end", { stdin: true });
await cat.write("one\n");
await cat.write(Buffer.alloc(200_000, "x"));
await cat.closeInput();
assert.equal((await bytesOf(cat.output("stdout"))).toString(), "one\n" + "x".repeat(200_000) + "end\n");
assert.equal((await cat.wait()).exitCode, 0);

step("files");
const info = await box.files.write("deep/er/a b%.txt", "héllo", { mode: 0o640 });
assert.deepEqual([info.size, info.permissions], [6, "0640"]);
assert.equal(await box.files.readText("/workspace/deep/er/a b%.txt"), "héllo");
assert.equal((await box.files.read("deep/er/a b%.txt", { range: { start: 3, end: 4 } })).toString(), "ll");
const large = Buffer.alloc(8 << 20, 7);
await box.files.write("large", new Blob([large]).stream());
assert.ok((await bytesOf(await box.files.readStream("large"))).equals(large));
assert.equal((await box.files.stat("deep")).isDir, true);
assert.equal(await box.files.exists("nowhere"), false);
await box.files.mkdir("made/below");
await box.files.move("made/below", "made/moved");
assert.deepEqual((await box.files.list("made")).map((entry) => entry.name), ["moved"]);
await assert.rejects(box.files.remove("made"), AtollError);
await box.files.remove("made", { recursive: true });
await box.files.remove("made", { force: true });
await assert.rejects(box.files.remove("made"), NotFoundError);
const archive = await bytesOf(await box.files.downloadDir("deep"));
assert.ok(gunzipSync(archive).includes("a b%.txt"));
await box.files.uploadDir("/tmp/copy", archive);
assert.match((await box.exec("find /tmp/copy -type f")).stdout, /a b%\.txt/);
const watching = new AbortController();
const changes = [];
for await (const event of box.files.watch("/workspace", {
  recursive: true, signal: watching.signal, onReady: () => void box.files.write("watched.txt", "x"),
})) {
  changes.push(event);
  if (event.path.endsWith("watched.txt")) break;
}
assert.ok(changes.length > 0);

step("states");
const snapshot = await box.snapshot({ message: "before", tags: [`${unique}-tag`] });
await box.files.write("later.txt", "later");
assert.deepEqual((await box.diff(snapshot.snapshotId)).map((change) => change.path), ["/workspace/later.txt"]);
assert.equal((await client.snapshots.get(`${unique}-tag`)).snapshotId, snapshot.snapshotId);
assert.ok((await box.snapshots()).some((other) => other.snapshotId === snapshot.snapshotId));
const copies = await box.fork({ count: 2 });
assert.deepEqual(await Promise.all(copies.map((copy) => copy.files.readText("later.txt"))), ["later", "later"]);
await box.restore({ snapshotId: snapshot.snapshotId });
assert.equal(await box.files.exists("later.txt"), false);
const older = await client.create({ fromSnapshot: snapshot.snapshotId });
assert.equal(await older.files.readText("deep/er/a b%.txt"), "héllo");
assert.equal((await box.pause()).status, "paused");
assert.equal((await box.resume()).status, "running");
assert.equal((await box.stop()).status, "stopped");
await assert.rejects(box.wait("running", { timeoutMs: 50 }), AtollError);
assert.equal((await box.start()).status, "running");
assert.equal((await box.wait()).status, "running");
assert.equal(await box.files.readText("deep/er/a b%.txt"), "héllo");

step("templates");
assert.ok((await client.templates.list()).some((template) => template.name === "base"));
const wanted = { from: "base", seed: [{ path: "/workspace/seed.txt", content: "seed" }], bootstrap: "echo built > /workspace/built.txt" };
assert.equal((await client.templates.create(`${unique}-tpl`, wanted)).reused, false);
assert.equal((await client.templates.create(`${unique}-tpl`, wanted)).reused, true);
const built = await client.create({ template: `${unique}-tpl` });
assert.equal((await built.exec("cat seed.txt built.txt")).stdout, "seedbuilt\n");
await built.delete();
await client.templates.delete(`${unique}-tpl`);
assert.equal(await client.templates.exists(`${unique}-tpl`), false);

step("network and secrets");
assert.equal(await box.network.get(), "deny-all");
await client.secrets.set("JS_TOKEN", "hidden");
assert.ok((await client.secrets.list()).some((secret) => secret.name === "JS_TOKEN"));
await box.network.set({ allow: { "api.example.org": [{ transform: [{ headers: { Authorization: "Bearer ${JS_TOKEN}" } }] }] } });
assert.deepEqual((await box.network.explain("https://api.example.org/")).setsHeaders.map((name) => name.toLowerCase()), ["authorization"]);
assert.equal((await box.network.explain("https://other.example.org/")).allowed, false);
await box.network.set("deny-all");
assert.ok(Array.isArray(await box.network.log()));
await client.secrets.delete("JS_TOKEN");

step("events");
const kinds = [];
for await (const event of box.events({ follow: false })) kinds.push(event.type);
assert.ok(kinds.includes("sandbox.created") && kinds.includes("sandbox.stopped"), kinds.join());
const given_up = new AbortController();
setTimeout(() => given_up.abort(reason), 50);
await assert.rejects(async () => { for await (const _ of client.events({ signal: given_up.signal })); }, (error) => error === reason);

step("errors");
await assert.rejects(client.get("nobody"), NotFoundError);
await assert.rejects(client.create({ template: "nowhere" }), TemplateNotFoundError);
await assert.rejects(client.create({ name: unique }), ConflictError);
await assert.rejects(client.create({ resources: { memoryMB: -1 } }), (error) => error instanceof ValidationError && error.fields.some((f) => f.includes("memoryMB")));
await assert.rejects(client.create({ colour: "green" }), (error) => error instanceof ValidationError && error.fields.includes("colour"));
await assert.rejects(new Client({ url: "http://127.0.0.1:9" }).system(), TransportError);
if (process.env.ATOLL_URL?.startsWith("http")) await assert.rejects(new Client({ apiKey: "wrong" }).system(), AuthError);
assert.equal((await client.whoami()).role, "admin");
assert.ok((await client.system()).version);

for (const each of await client.list()) if (each.info.name?.startsWith(unique) || [...copies, older].some((c) => c.id === each.id)) await each.delete();
await client.snapshots.delete(snapshot.snapshotId);
client.close();
console.log("ok");
