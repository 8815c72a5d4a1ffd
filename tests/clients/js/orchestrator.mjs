// The orchestrator's calls in the order in which a controller makes them. Argument: the package's entry.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { Client, ConflictError, NotFoundError, TimeoutError, ValidationError, orchestrator } = await import(pathToFileURL(process.argv[2]));
const client = new Client();
const jobs = orchestrator();
const space = `space-${process.pid}`;
const manifest = (name, script, spec = {}) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name, labels: { app: "test" } },
  spec: {
    backoffLimit: 0,
    ...spec,
    template: {
      spec: {
        restartPolicy: "Never",
        containers: [{
          name: "main", image: "base", command: ["/bin/bash", "-c"], args: [script],
          env: [{ name: "COLOUR", value: "green" }], resources: { limits: { cpu: "500m", memory: "128Mi" } },
        }],
      },
    },
  },
});

console.log("a job that succeeds");
const { uid } = await jobs.claim(client, space, manifest("good", "echo $COLOUR; echo err >&2; sleep 0.3; echo end"));
assert.equal(await jobs.findPod(client, space, "good"), uid);
assert.equal((await client.get(uid)).info.resources.memoryMB, 128);
await assert.rejects(jobs.claim(client, space, manifest("good", "true")), ConflictError);
const output = { stdout: "", stderr: "" };
await jobs.streamLogs(client, space, uid, async (stream, text) => { output[stream] += text; });
assert.deepEqual(output, { stdout: "green\nend\n", stderr: "err\n" });
const done = await jobs.waitForCompletion(client, space, "good", { timeoutMs: 10_000 });
assert.deepEqual(done, { phase: "Succeeded", complete: true, active: 0, succeeded: 1, failed: 0 });
await jobs.release(client, space, "good");
await jobs.release(client, space, "good");
assert.equal(await jobs.findPod(client, space, "good"), null);
await assert.rejects(jobs.getStatus(client, space, "good"), NotFoundError);

console.log("jobs that fail");
await jobs.claim(client, space, manifest("bad", "exit 4"));
const failed = await jobs.waitForCompletion(client, space, "bad", { timeoutMs: 10_000 });
assert.deepEqual([failed.phase, failed.failed, failed.message], ["Failed", 1, "exit code 4"]);
await jobs.claim(client, space, manifest("late", "sleep 600", { activeDeadlineSeconds: 1 }));
assert.equal((await jobs.waitForCompletion(client, space, "late", { timeoutMs: 20_000 })).reason, "DeadlineExceeded");

console.log("pause, resume, wait");
await jobs.claim(client, space, manifest("long", "until [ -e /tmp/go ]; do sleep 0.05; done"));
assert.equal((await jobs.getStatus(client, space, "long")).phase, "Running");
await assert.rejects(jobs.waitForCompletion(client, space, "long", { timeoutMs: 100 }), TimeoutError);
await jobs.pause(client, space, "long");
assert.equal((await jobs.getStatus(client, space, "long")).reason, "Paused");
await jobs.resume(client, space, "long");
await client.sandbox(await jobs.findPod(client, space, "long")).exec("touch /tmp/go");
assert.equal((await jobs.waitForCompletion(client, space, "long", { timeoutMs: 10_000 })).phase, "Succeeded");

console.log("what is refused");
const volumes = manifest("x", "true");
volumes.spec.template.spec.volumes = [];
await assert.rejects(jobs.claim(client, space, volumes), (error) => error instanceof ValidationError && error.fields[0] === "spec.template.spec.volumes");
await assert.rejects(jobs.claim(client, space, manifest("x", "true", { parallelism: 2 })), /spec.parallelism/);
for (const name of ["bad", "late", "long"]) await jobs.release(client, space, name);
console.log("ok");
