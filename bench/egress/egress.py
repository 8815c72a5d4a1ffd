#!/usr/bin/env python3
"""./dev bench egress --json FILE: sandboxes' way out, compared with nginx and with no proxy at all, in one run on namespaces
of its own."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

SOURCE = pathlib.Path("@PROJECT_SOURCE_DIR@")
BUILD = pathlib.Path("@CMAKE_BINARY_DIR@")
os.environ.setdefault("ATOLL_BIN", str(BUILD / "atoll"))
os.environ.setdefault("ATOLL_TEST_TEMPLATE", str(BUILD / "test-template"))
sys.path[:0] = [str(SOURCE / "tests" / "integration"), str(SOURCE / "tests" / "attack")]

from box import Box  # noqa: E402
from internet import WEB, Internet  # noqa: E402
from import_template import import_once  # noqa: E402
from product import http, wait_until  # noqa: E402
from server import AtollServer  # noqa: E402

LOAD = BUILD / "bench" / "atoll_bench_egress_load"
SECONDS = "3"
GOALS = {
    "passthrough_vs_nginx": (0.9, "least"), "inject_vs_nginx": (0.8, "least"), "first_byte_added_ms": (1.5, "most"),
    "policy_ms": (10, "most"), "dns_per_s": (20000, "least"), "net_create_added_ms": (1.5, "most"),
}  # fmt: skip


def nginx_program():
    found = shutil.which("nginx")
    folder = pathlib.Path(os.environ.get("ATOLL_NGINX_DIR", ""))
    return found or (str(folder / "usr/sbin/nginx") if folder.name else None), folder


class Nginx:
    def __init__(self, net, namespace, name, body):
        program, folder = nginx_program()
        self.home = net.home / name
        self.home.mkdir()
        modules = folder / "usr/lib/nginx/modules/ngx_stream_module.so"
        load = f"load_module {modules};\n" if modules.exists() else ""
        (self.home / "conf").write_text(
            f"{load}daemon off; worker_processes 1; pid {self.home}/pid; error_log {self.home}/log;\n"
            f"events {{ worker_connections 4096; }}\n{body}"
        )
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{namespace}", "--", program, "-e", f"{self.home}/log", "-p", str(self.home), "-c",
             str(self.home / "conf")]
        )  # fmt: skip

    def close(self):
        self.process.terminate()
        self.process.wait()


def http_block(home, inner):
    paths = "".join(f"{what}_temp_path {home}/{what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"http {{ access_log off; keepalive_requests 1000000; {paths}\n{inner}\n}}\n"


def start_nginx(net):
    certificate = f"ssl_certificate {net.home}/good.pem; ssl_certificate_key {net.home}/good.key;"
    files = net.home / "www"
    files.mkdir()
    (files / "small").write_text("x" * 200)
    (files / "large").write_bytes(b"x" * (64 << 20))
    origin = http_block(net.home / "origin", f"server {{ listen {WEB}:9443 ssl; {certificate} root {files}; }}")
    stream = f"stream {{ server {{ listen 127.0.0.1:7443; proxy_pass {WEB}:9443; }} }}\n"
    again = (
        f"upstream o {{ server {WEB}:9443; keepalive 64; keepalive_requests 1000000; }}\nserver {{ listen 127.0.0.1:8443 ssl; {certificate}\n"
        f"location / {{ proxy_pass https://o; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_set_header Host api.allowed.test;"
        f" proxy_set_header Authorization 'Bearer x'; proxy_ssl_verify on; proxy_ssl_trusted_certificate {net.ca};"
        f" proxy_ssl_name api.allowed.test; proxy_ssl_server_name on; }} }}"
    )
    proxy = stream + http_block(net.home / "proxy", again)
    return [Nginx(net, net.outer, "origin", origin), Nginx(net, net.inner, "proxy", proxy)]


def load(where, *arguments):
    """In a namespace by its name, or in that of a process."""
    enter = ["-t", str(where), "-n"] if isinstance(where, int) else [f"--net=/run/netns/{where}"]
    done = subprocess.run(["nsenter", *enter, "--", str(LOAD), *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout)


def best_ratio(ours, theirs, rounds=3):
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return max(a / b for a, b in pairs), pairs


def measure(net, server):
    result, details = {}, {}
    http("PUT", "/v1/secrets/BENCH_KEY", {"value": "bench-key-0123456789"})
    rule = {"transform": [{"headers": {"Authorization": "Bearer ${BENCH_KEY}"}}]}
    policy = {"allow": {"allowed.test": [], "api.allowed.test": [rule]}}
    box = Box(http("POST", "/v1/sandboxes", {"network": policy}).json["id"])
    inside = server.agent_pid(box.id)
    box.exec("curl", "-sk", "https://allowed.test:9443/small")
    result["passthrough_vs_nginx"], details["passthrough_bytes_per_s"] = best_ratio(
        lambda: load(inside, "bytes", WEB, "9443", "allowed.test", "/large", SECONDS, "4"),
        lambda: load(net.inner, "bytes", "127.0.0.1", "7443", "allowed.test", "/large", SECONDS, "4"),
    )
    result["inject_vs_nginx"], details["inject_requests_per_s"] = best_ratio(
        lambda: load(inside, "requests", WEB, "9443", "api.allowed.test", "/small", SECONDS, "16"),
        lambda: load(net.inner, "requests", "127.0.0.1", "8443", "api.allowed.test", "/small", SECONDS, "16"),
    )
    through = [load(inside, "first", WEB, "9443", "allowed.test", "200") for _ in range(3)]
    direct = [load(net.inner, "first", WEB, "9443", "allowed.test", "200") for _ in range(3)]
    result["first_byte_added_ms"] = (min(through) - min(direct)) / 1000
    result["dns_per_s"] = max(load(inside, "dns", "10.0.2.3", "allowed.test", "2") for _ in range(3))
    result["policy_ms"] = policy_ms(box)
    result["net_create_added_ms"] = create_added_ms(policy)
    return result, details


def policy_ms(box):
    names = {f"host{i}.example{i % 7}.org": [] for i in range(1000)}
    times = []
    for _ in range(11):
        began = time.monotonic()
        http("PUT", box.path("/network"), {"policy": {"allow": names}})
        times.append((time.monotonic() - began) * 1000)
    return statistics.median(times)


def create_added_ms(policy):
    plain = {"allow": {"allowed.test": []}}
    times = {False: [], True: []}
    for _ in range(30):
        for network in (False, True):
            body = {"pool": False, **({"network": plain} if network else {})}
            began = time.monotonic()
            made = http("POST", "/v1/sandboxes", body).json["id"]
            times[network].append((time.monotonic() - began) * 1000)
            http("DELETE", f"/v1/sandboxes/{made}")
    return statistics.median(times[True]) - statistics.median(times[False])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if not nginx_program()[0]:
        sys.exit("there is no nginx to compare with: ./dev bench egress fetches it")
    import_once(BUILD / "test-template")
    with contextlib.ExitStack() as owned:
        net = Internet().start()
        owned.callback(net.close)
        for one in start_nginx(net):
            owned.callback(one.close)
        server = AtollServer(*net.options(), netns=net.inner, reserve=8)
        owned.callback(server.destroy)
        server.start()
        wait_until(server.settled, 30, "the pool is full")
        result, details = measure(net, server)
        server.close()
    missed = 0
    for key, (goal, kind) in GOALS.items():
        good = result[key] >= goal if kind == "least" else result[key] <= goal
        missed += not good
        print(f"{key:24} {result[key]:12.3f}   goal: at {kind} {goal}{'' if good else '   MISSED'}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({**result, "details": details}, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
