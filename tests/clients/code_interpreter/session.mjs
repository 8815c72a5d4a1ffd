// E2B's code interpreter package, as its users write it. Argument: the package's entry.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { Sandbox } = await import(pathToFileURL(process.argv[2]));
const step = (name) => console.log(name);

step("cells");
const box = await Sandbox.create();
await box.runCode("x = 41");
const sum = await box.runCode("x + 1");
assert.equal(sum.text, "42");
assert.equal(sum.executionCount, 2);
assert.ok(sum.results[0].isMainResult);
const said = [];
const out = await box.runCode("import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('three')", {
  onStdout: (message) => said.push(message.line ?? message),
  onStderr: (message) => said.push(message.line ?? message),
});
assert.equal(out.logs.stdout.join(""), "one\nthree\n");
assert.equal(out.logs.stderr.join(""), "two\n");
assert.ok(said.length >= 2);

step("errors");
const failed = await box.runCode("1/0");
assert.equal(failed.error.name, "ZeroDivisionError");
assert.equal(failed.error.value, "division by zero");
assert.match(failed.error.traceback, /1\/0/);

step("results");
const shown = await box.runCode(`
class Page:
    def _repr_html_(self): return "<b>"
    def _repr_png_(self): return b"\\x89PNG"
display({"a": 1})
Page()`);
assert.deepEqual(shown.results[0].json, { a: 1 });
assert.equal(shown.results[1].html, "<b>");
assert.equal(shown.results[1].png, Buffer.from("\x89PNG", "latin1").toString("base64"));

step("languages");
assert.equal((await box.runCode("const y = 2; y * 21", { language: "javascript" })).text, "42");
assert.equal((await box.runCode("const z: number = 42; z", { language: "typescript" })).text, "42");
assert.equal((await box.runCode("echo hi", { language: "bash" })).logs.stdout.join(""), "hi\n");
assert.equal((await box.runCode("false", { language: "bash" })).error.value, "1");
await assert.rejects(box.runCode("1", { language: "r" }));

step("environment");
const read = "import os; os.environ.get('MINE')";
assert.equal((await box.runCode(read, { envs: { MINE: "yes" } })).text, "'yes'");
assert.equal((await box.runCode(read)).text, undefined);

step("contexts");
const context = await box.createCodeContext({ cwd: "/tmp" });
assert.equal(context.cwd, "/tmp");
await box.runCode("x = 'mine'", { context });
assert.equal((await box.runCode("x", { context })).text, "'mine'");
assert.equal((await box.runCode("x")).text, "41");
assert.equal((await box.runCode("import os; os.getcwd()", { context })).text, "'/tmp'");
assert.ok((await box.listCodeContexts()).some((one) => one.id === context.id));
await box.restartCodeContext(context);
assert.equal((await box.runCode("x", { context })).error.name, "NameError");
await box.removeCodeContext(context);
assert.ok(!(await box.listCodeContexts()).some((one) => one.id === context.id));
await assert.rejects(box.runCode("1", { context }));

step("time limits");
await assert.rejects(box.runCode("import time; time.sleep(60)", { timeoutMs: 1000 }));
assert.equal((await box.runCode("x")).text, "41");

step("files beside it");
await box.files.write("data.txt", "from a file");
assert.equal((await box.runCode("open('data.txt').read()")).text, "'from a file'");

if (process.argv[3]) {
  step("data");
  const frame = await box.runCode("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})");
  assert.match(frame.results[0].html, /<table/);
  assert.deepEqual(frame.results[0].data, { a: [1, 2], b: ["x", "y"] });
  const plot = await box.runCode("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()");
  const png = plot.results.find((one) => one.png).png;
  assert.equal(Buffer.from(png, "base64").subarray(1, 4).toString(), "PNG");
}
await box.kill();
console.log("ok");
process.exit(); // a timer of the package, of a call that failed, would keep this waiting for a minute
