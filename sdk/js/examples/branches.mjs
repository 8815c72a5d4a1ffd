// One prepared state, several attempts from it at the same time, each in a sandbox of its own.
import { Client } from "atoll-sandbox";

const client = new Client();
const root = await client.create();
await root.exec("echo 42 > answer.txt");
const branches = await root.fork({ count: 3 });
const attempts = branches.map((box, index) => box.exec(`expr $(cat answer.txt) + ${index}`));
for (const { stdout } of await Promise.all(attempts)) process.stdout.write(stdout);
await Promise.all([root, ...branches].map((box) => box.delete()));
