"""The calls of OpenEnv's harness in their order, with a stub for the agent and a scripted model that runs in the
sandbox: readiness, install, files, proxy, agent, trace, verification, end."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

from atoll_sandbox import AtollSandboxBackend

# Two scripted turns of a model, in the form of an OpenAI server.
MODEL = '''
import http.server, json, sys
turns = [{"tool": "write", "path": "answer.txt", "text": "42"}, {"text": "done"}]
trace = open(sys.argv[1], "a", buffering=1)
class Model(http.server.BaseHTTPRequestHandler):
    def reply(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.reply({"status": "ok"})
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Authorization"] == "Bearer the-key"
        turn = turns[len(request["messages"]) - 1]
        trace.write(json.dumps({"request": request, "response": turn}) + "\\n")
        self.reply({"choices": [{"message": turn}]})
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 7000), Model).serve_forever()
'''

AGENT = '''#!/usr/bin/env python3
import json, os, sys, urllib.request
if sys.argv[1:] == ["--version"]:
    print("0.0.0-stub")
    sys.exit(0)
messages = [sys.argv[-1]]
while True:
    body = json.dumps({"messages": messages}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body,
                                     {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    turn = json.load(urllib.request.urlopen(request, timeout=20))["choices"][0]["message"]
    print(json.dumps(turn), flush=True)
    if "tool" not in turn:
        break
    open(turn["path"], "w").write(turn["text"])
    messages.append("ok")
'''


def rollout(backend, episode):
    home = backend.sandbox_home
    box = backend.create(timeout_s=1200, metadata={"episode_id": episode})
    try:
        ready = box.exec("echo ok", timeout=5)
        assert ready.exit_code == 0 and "ok" in ready.stdout
        agent = f"{home}/.opencode/bin/opencode"
        assert box.exec(f"{agent} --version", timeout=10).exit_code != 0  # not there yet
        folders = " ".join(f"{home}/{name}" for name in (".config/opencode", "logs/agent", "logs/verifier", "task", "workdir"))
        box.write_text(agent, AGENT)
        install = box.exec(f"set -e && mkdir -p {folders} && chmod +x {agent} && {agent} --version", timeout=240)
        assert (install.exit_code, install.stdout) == (0, "0.0.0-stub\n"), install
        box.write_text(f"{home}/.config/opencode/opencode.json", json.dumps({"key": "the-key"}))
        box.write_text(f"{home}/task/instruction.md", 'Write "the answer" into answer.txt\n')
        assert box.exec("true", timeout=300).exit_code == 0  # setup

        assert not box.exists(f"{home}/proxy/interception.py")
        box.write_text(f"{home}/proxy/interception.py", MODEL)
        trace = f"{home}/logs/agent/proxy_trace.jsonl"
        proxy = box.start_bg(
            f"cd {home}/proxy && python3 interception.py {trace} > {home}/logs/agent/proxy.log 2>&1",
            envs={"OPENCODE_UPSTREAM_API_KEY": "the-key"},
        )
        for _ in range(120):
            if box.exec("curl -sf http://127.0.0.1:7000/healthz", timeout=5).exit_code == 0:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(box.read_text(f"{home}/logs/agent/proxy.log"))

        running = box.start_bg(
            f'export PATH="$HOME/.opencode/bin:$PATH" && cd {home}/workdir && '
            f'opencode run --format json "$(cat {home}/task/instruction.md)" 2>&1 | tee {home}/logs/agent/opencode.jsonl',
            envs={
                "OPENAI_BASE_URL": "http://127.0.0.1:7000/v1",
                "OPENAI_API_KEY": "the-key",
                "OPENCODE_CONFIG": f"{home}/.config/opencode/opencode.json",
            },
        )
        assert running.wait(timeout=60) == 0
        said = [json.loads(line) for line in box.read_text(f"{home}/logs/agent/opencode.jsonl").splitlines()]
        assert said[-1] == {"text": "done"}, said
        turns = [json.loads(line) for line in box.read_text(trace).splitlines()]
        assert len(turns) == 2 and turns[0]["request"]["messages"][0].startswith('Write "the answer"'), turns
        assert box.exec(f"test $(cat {home}/workdir/answer.txt) = 42", timeout=120).exit_code == 0
        box.exec(f"echo 1.0 > {home}/logs/verifier/reward.txt", timeout=120)
        reward = float(box.read_text(f"{home}/logs/verifier/reward.txt"))
        found = box.exec(f"find {home}/workdir -maxdepth 2 -type f -size -64k 2>/dev/null | head -32", timeout=10)
        assert found.stdout.split() == [f"{home}/workdir/answer.txt"]
        running.kill()
        proxy.kill()
        return reward
    finally:
        box.kill()


def main():
    backend = AtollSandboxBackend()
    # All on port 7000 at once: each sandbox has a network of its own.
    with ThreadPoolExecutor(4) as pool:
        rewards = list(pool.map(lambda i: rollout(backend, f"episode-{i}"), range(4)))
    assert rewards == [1.0] * 4
    print("ok")


if __name__ == "__main__":
    main()
