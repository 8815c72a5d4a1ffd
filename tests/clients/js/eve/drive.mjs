// Talks to `eve start`. Arguments: the host, what to do, and a session's state for `resume`. Prints one line of JSON.
import { Client } from "eve/client";

const [host, what, state] = process.argv.slice(2);
const client = new Client({ host });
const bash = (command) => "SCRIPT " + JSON.stringify([[{ name: "bash", input: { command } }]]);
const probe = (name) => "SCRIPT " + JSON.stringify([[{ name: "probe", input: { what: name } }]]);
const outputs = (result) => JSON.parse((result.message ?? "").replace(/^RESULTS /, "")).map((each) => each.output);
const say = async (session, message) => outputs(await (await session.send(message)).result());
const print = (value) => console.log(JSON.stringify(value));

if (what === "create") {
  const { session, response } = await client.sessions.create({ message: bash("echo one > one.txt; cat one.txt prepared.txt") });
  print({ outputs: outputs(await response.result()), state: session.state });
} else if (what === "resume") {
  const { sessionId, streamIndex } = JSON.parse(state);
  const session = client.sessions.attach(sessionId, { streamIndex });
  print({ outputs: await say(session, bash("cat one.txt")), state: session.state });
} else if (what === "cancel") {
  const { session, response } = await client.sessions.create({ message: bash("touch begun; setsid sleep 27182 & sleep 27183; touch never") });
  setTimeout(() => void session.cancel(), 3000);
  await response.result();
  const left = await say(session, bash("ls; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep 2718[23]' | wc -l"));
  print({ outputs: left });
} else if (what === "long") {
  // Newer versions of eve let go of a command after half a minute; it goes on, and its end is there for a later step.
  const { session, response } = await client.sessions.create({ message: bash("sleep 34; echo finished > long.txt") });
  const [first] = outputs(await response.result());
  const [second] = await say(session, bash("for i in $(seq 200); do [ -e long.txt ] && break; sleep 0.1; done; cat long.txt"));
  print({ outputs: [first, second] });
} else if (what === "network") {
  const { session, response } = await client.sessions.create({ message: probe("policy") });
  await response.result();
  const curl = (host) => bash(`curl -sS -m 10 https://${host}/echo; echo; env | grep -c injected; true`);
  print({ outputs: [await say(session, curl("api.allowed.test")), await say(session, curl("other.test"))].flat() });
} else {
  throw new Error(`${what}?`);
}
process.exit(0);
