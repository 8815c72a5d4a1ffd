// A sandbox, a command, a file, and the end of it.
import { Client } from "atoll-sandbox";

const client = new Client();
const box = await client.create({ resources: { memoryMB: 512 } });
try {
  await box.files.write("greet.py", "print('hello from inside')\n");
  const result = await box.exec("python3 greet.py", { onStdout: (text) => process.stdout.write(text) });
  console.log(`exit code ${result.exitCode} after ${result.durationMs} ms`);
} finally {
  await box.delete();
}
