// The kernel of JavaScript and TypeScript: runs cells in one global scope, says what they display. See python.py for
// how it is spoken with. In scope: `rest`, bytes of requests that came with this program, and `sucrase`, which reads
// and strips TypeScript (null where this build has none).
"use strict";
const fs = require("fs");
const vm = require("vm");
const util = require("util");
const path = require("path");
const { pathToFileURL } = require("url");
const { createRequire, builtinModules } = require("module");

const [IN, OUT, ERR] = [7, 8, 9];
const PIECE = 3900;
const TEXT_LIMIT = 1 << 20;
const RESULT_LIMIT = 24 << 20;
const BUNDLE = Symbol.for("Jupyter.display");

let mark = "";
let count = 0;
let interrupt = null; // of the cell that runs

function writeAll(to, bytes) {
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(fs.writeSync(to, bytes));
    } catch (error) {
      if (error.code !== "EAGAIN") process.reallyExit(1);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function say(message, to = OUT) {
  let data = Buffer.from(JSON.stringify(message));
  if (data.length > RESULT_LIMIT) {
    const note = `a result of ${data.length} bytes was left out: at most ${RESULT_LIMIT}`;
    data = Buffer.from(JSON.stringify({ t: "result", main: false, data: { "text/plain": note } }));
  }
  for (let start = 0; start < data.length; start += PIECE) {
    const part = data.subarray(start, start + PIECE);
    const flag = start + PIECE >= data.length ? "." : "+";
    const head = "\x1e" + mark + part.length.toString(16).padStart(4, "0") + flag;
    writeAll(to, Buffer.concat([Buffer.from(head), part]));
  }
}

// What values look like.

function isBundle(value) {
  const keys = value && typeof value === "object" ? Object.keys(value) : [];
  return keys.length > 0 && keys.every((key) => /^[a-z]+\/[\w.+-]+$/.test(key));
}

function encoded(bundle) {
  const found = {};
  for (const [kind, value] of Object.entries(bundle)) {
    found[kind] = value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
  }
  return found;
}

function bundleOf(value) {
  if (value !== null && typeof value === "object" && typeof value[BUNDLE] === "function") {
    return encoded(value[BUNDLE]());
  }
  const text = typeof value === "string" ? value : util.inspect(value, { depth: 4, maxArrayLength: 1000 });
  return { "text/plain": text.slice(0, TEXT_LIMIT) };
}

function display(value) {
  let data;
  if (isBundle(value)) {
    data = encoded(value);
  } else {
    data = bundleOf(value);
    if (value !== null && typeof value === "object" && Object.keys(data).length === 1) {
      try {
        data["application/json"] = JSON.parse(JSON.stringify(value));
      } catch {
        // No JSON: the text has to do.
      }
    }
  }
  say({ t: "result", main: false, data });
}

// Modules, as a program in the working directory would find them.

function load(name) {
  if (/^(node:|data:|file:)/.test(name) || builtinModules.includes(name)) return import(name);
  const here = createRequire(path.join(process.cwd(), "cell.js"));
  return import(pathToFileURL(/^\.{0,2}\//.test(name) ? path.resolve(name) : here.resolve(name)).href);
}

function requireHere(name) {
  return createRequire(path.join(process.cwd(), "cell.js"))(name);
}

// Cells.

const IMPORT = /^import\s+(?:(?:type\s+)?(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?\s*from\s*)?(["'])(.*?)\4/s;

function importStatement(text) {
  const found = IMPORT.exec(text);
  if (!found) return null;
  const [whole, standard, space, names, , name] = found;
  const from = `(await __import(${JSON.stringify(name)}))`;
  const parts = [];
  if (standard) parts.push(`var ${standard} = ${from}.default`);
  if (space) parts.push(`var ${space} = ${from}`);
  if (names) {
    const list = names.split(",").map((one) => one.trim()).filter((one) => one && !/^type\s/.test(one));
    parts.push(`var {${list.map((one) => one.replace(/\s+as\s+/, ": ")).join(", ")}} = ${from}`);
  }
  if (parts.length === 0) parts.push(`await __import(${JSON.stringify(name)})`);
  return { length: whole.length, text: parts.join("; ") };
}

// What a cell declares stays, and may be declared again: at the top, `const` and `let` are `var`, and so are classes
// and imports.
function keepable(code) {
  const { file, types } = sucrase.read(code);
  const tokens = file.tokens;
  const edits = [];
  const opening = [types.braceL, types.parenL, types.bracketL, types.dollarBraceL, types.braceBarL];
  const closing = [types.braceR, types.parenR, types.bracketR, types.braceBarR];
  let depth = 0;
  let classes = []; // depths at which a class's body ends
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    const before = i > 0 ? tokens[i - 1].type : types.semi;
    if (opening.includes(token.type)) depth++;
    if (closing.includes(token.type)) {
      depth--;
      if (classes.length > 0 && depth === 0 && token.type === types.braceR) {
        edits.push({ at: token.end, length: 0, text: ";" });
        classes = [];
      }
    }
    if (depth !== 0) continue;
    if (token.type === types._const || token.type === types._let) {
      edits.push({ at: token.start, length: token.end - token.start, text: "var" });
    } else if (token.type === types._class && [types.semi, types.braceR, types.eof].includes(before)) {
      const name = tokens[i + 1];
      if (name && name.type === types.name) {
        edits.push({ at: token.start, length: 0, text: `var ${code.slice(name.start, name.end)} = ` });
        classes.push(depth);
      }
    } else if (token.type === types._import) {
      const made = importStatement(code.slice(token.start));
      if (made) edits.push({ at: token.start, ...made });
    } else if (token.type === types._export) {
      edits.push({ at: token.start, length: token.end - token.start, text: "" });
    }
  }
  for (const edit of edits.reverse()) {
    code = code.slice(0, edit.at) + edit.text + code.slice(edit.at + edit.length);
  }
  return code;
}

// Node's own way to run a line with `await` at the top.
let lineReader = null;
let failCell = null;
function startLineReader() {
  const { PassThrough, Writable } = require("stream");
  const nowhere = new Writable({ write: (_part, _encoding, done) => done() });
  const options = { input: new PassThrough(), output: nowhere, prompt: "", terminal: false };
  lineReader = require("repl").start({ ...options, useGlobal: true, breakEvalOnSigint: true });
  lineReader.removeAllListeners("SIGINT");
  // It tells of errors by its domain, where there is one.
  if (!lineReader._domain) return;
  lineReader._domain.removeAllListeners("error");
  lineReader._domain.on("error", (error) => (failCell ? failCell(error) : complain(error)));
}

function evaluateAwaiting(code, name) {
  if (lineReader === null) startLineReader();
  return new Promise((resolve, reject) => {
    failCell = (error) => reject((error && error.err) || error);
    const done = (error, value) => (error ? failCell(error) : resolve(value));
    // While it runs it takes interrupts itself, and leaves nobody to take them after.
    process.removeListener("SIGINT", onInterrupt);
    try {
      lineReader.eval(code + "\n", lineReader.context, name, done);
    } finally {
      process.on("SIGINT", onInterrupt);
    }
  }).finally(() => {
    failCell = null;
  });
}

async function evaluate(code, language) {
  if (sucrase === null && language === "typescript") throw new Error("this server was built without TypeScript");
  if (language === "typescript") code = sucrase.strip(code);
  if (sucrase !== null) {
    try {
      code = keepable(code);
    } catch {
      // It cannot be read: the engine says what is wrong with it, better.
    }
  }
  const name = `cell-${count}.js`;
  let script;
  try {
    script = new vm.Script(code, { filename: name, importModuleDynamically: load });
  } catch (error) {
    if (!/\bawait\b/.test(code)) throw error;
    return evaluateAwaiting(code, name);
  }
  return script.runInThisContext({ breakOnSigint: true, displayErrors: false });
}

function describe(error) {
  if (!util.types.isNativeError(error) && !(error instanceof Error)) {
    const text = util.inspect(error);
    return { t: "error", name: "Thrown", value: text.slice(0, TEXT_LIMIT), traceback: "" };
  }
  const lines = String(error.stack || "").split("\n");
  const own = lines.findIndex((line) => /\[eval\]|evalmachine|node:(vm|repl|internal|domain)/.test(line));
  const traceback = (own > 0 ? lines.slice(0, own) : lines).join("\n");
  let name = error.name;
  if (error.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED") name = "Interrupted";
  return { t: "error", name, value: String(error.message).slice(0, TEXT_LIMIT), traceback: traceback.slice(0, TEXT_LIMIT) };
}

async function run(request) {
  count++;
  const env = request.env || {};
  const kept = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  Object.assign(process.env, env);
  say({ t: "begin", n: count });
  say({ t: "begin" }, ERR);
  let code = 0;
  try {
    const stopped = new Promise((_resolve, reject) => {
      interrupt = () => reject(Object.assign(new Error("interrupted"), { name: "Interrupted", stack: "" }));
    });
    const value = await Promise.race([evaluate(request.code, request.language), stopped]);
    if (value !== undefined) {
      globalThis._ = value;
      say({ t: "result", main: true, data: bundleOf(value) });
    }
  } catch (error) {
    code = 1;
    say(describe(error));
  }
  interrupt = null;
  for (const [name, value] of Object.entries(kept)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  say({ t: "end", code });
  say({ t: "end" }, ERR);
}

function onInterrupt() {
  if (interrupt) interrupt();
}

function complain(error) {
  process.stderr.write(util.inspect(error) + "\n");
}

function start() {
  globalThis.require = requireHere;
  globalThis.module = { exports: {} };
  globalThis.exports = globalThis.module.exports;
  globalThis.display = display;
  Object.defineProperty(globalThis, "__import", { value: load, enumerable: false });
  process.on("SIGINT", onInterrupt);
  process.on("uncaughtException", complain);
  process.on("unhandledRejection", complain);

  let waiting = Promise.resolve();
  let buffer = Buffer.from(rest);
  const take = (part) => {
    buffer = Buffer.concat([buffer, part]);
    for (let end = buffer.indexOf(10); end >= 0; end = buffer.indexOf(10)) {
      const request = JSON.parse(buffer.subarray(0, end).toString());
      buffer = buffer.subarray(end + 1);
      waiting = waiting.then(() => {
        mark = request.mark;
        return run(request);
      });
    }
  };
  take(Buffer.alloc(0));
  // Not a file's stream: that would read on a thread, for which an exit would wait.
  const requests = new (require("net").Socket)({ fd: IN, readable: true, writable: false });
  requests.on("data", take);
  requests.on("end", () => process.reallyExit(0));
}
start();
