"""C: two sandboxes and the host."""

import json
import pathlib
import socket
import subprocess
import threading

import product
from harness import ProductCase

# Prints the first bytes a peer sends, for each "host port" that answers.
ASK = """
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(" ", 1)
    try:
        with socket.create_connection((host, int(port)), 2) as peer:
            peer.settimeout(2)
            print(peer.recv(64).decode(errors="replace"))
    except OSError: pass
"""

SERVE = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[2])))
while True:
    peer, _ = server.accept()
    peer.sendall(sys.argv[1].encode()); peer.close()
"""


class Banner:
    """A listener of the host that greets every caller with a secret word."""

    def __init__(self, family, address):
        self.word = product.unique("banner")
        self.server = socket.create_server((address, 0), family=family)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            with peer:
                peer.sendall(self.word.encode())


def host_addresses():
    """Of every interface; the host's name need not resolve."""
    links = json.loads(subprocess.check_output(["ip", "-json", "-4", "address"]))
    return [address["local"] for link in links for address in link["addr_info"]]


def uid_ranges(pid):
    rows = pathlib.Path(f"/proc/{pid}/uid_map").read_text().split("\n")
    return [(int(row.split()[1]), int(row.split()[2])) for row in rows if row]


class Visibility(ProductCase):
    def test_C01_signals_stay_inside(self):
        x, y = self.sandbox("dev"), self.sandbox("dev")
        marker, _ = self.marked(y)
        own, _ = self.marked(x)
        pid = product.processes_with(marker)[0]
        self.assertNotEqual(x.run("kill", "-0", str(pid), check=False).returncode, 0)
        x.sh("kill -9 -1; true", check=False)
        self.assert_gone(own)  # the control: kill -1 did reach everything in x
        self.assertTrue(product.processes_with(marker))
        self.assert_alive(x)  # PID 1 is immune

    def test_C04_shared_memory_is_not_shared(self):
        x, y = self.sandbox("dev"), self.sandbox("dev")
        name = product.unique("segment")
        y.sh('ipcmk -M 4096 && ipcmk -Q && touch "/dev/shm/$1"', name)
        self.assertIn("1", y.sh("tail -n +2 /proc/sysvipc/shm | wc -l").stdout)
        self.assertEqual(x.probes("C04"), {"C04": "PASS C04"})
        self.assertNotEqual(x.run("test", "-e", f"/dev/shm/{name}", check=False).returncode, 0)

    def test_C05_user_ids_of_two_sandboxes_are_disjoint_and_not_the_hosts(self):
        maps = []
        for _ in range(2):
            marker, _ = self.marked(self.sandbox("dev"))
            maps.append(uid_ranges(product.processes_with(marker)[0]))
        for ranges in maps:
            for first, _ in ranges:
                self.assertGreater(first, 65535, "ids of the host's accounts are mapped")
        for first, size in maps[0]:
            for other, other_size in maps[1]:
                self.assertTrue(first + size <= other or other + other_size <= first, maps)

    def test_C06_another_sandboxs_service_is_out_of_reach(self):
        x, y = self.sandbox("dev"), self.sandbox("dev")
        word, port = product.unique("service"), "18765"
        self.addCleanup(self.end, y.start("python3", "-c", SERVE, word, port))
        product.wait_until(
            lambda: word in y.run("python3", "-c", ASK, f"127.0.0.1 {port}").stdout, 15, "y serves"
        )
        addresses = y.run("hostname", "-I", check=False).stdout.split()
        targets = [f"{host} {port}" for host in ["127.0.0.1", "0.0.0.0", "10.0.2.15", *addresses]]
        self.assertNotIn(word, x.run("python3", "-c", ASK, *targets).stdout)

    def test_C07_listeners_of_the_host_are_out_of_reach(self):
        box = self.sandbox("dev")
        banners = [Banner(socket.AF_INET, "127.0.0.1"), Banner(socket.AF_INET6, "::1"),
                   Banner(socket.AF_INET, "0.0.0.0")]  # fmt: skip
        names = ["127.0.0.1", "::1", "0.0.0.0", "localhost", "host.docker.internal", "172.17.0.1",
                 "10.0.2.2", "::ffff:127.0.0.1", *host_addresses()]  # fmt: skip
        for banner in banners:
            self.addCleanup(banner.server.close)
            address = banner.server.getsockname()[0].replace("0.0.0.0", "127.0.0.1")
            with socket.create_connection((address, banner.port), 2) as control:
                self.assertEqual(control.recv(64).decode(), banner.word)
            heard = box.run("python3", "-c", ASK, *[f"{name} {banner.port}" for name in names])
            self.assertNotIn(banner.word, heard.stdout)

    def test_C08_the_servers_socket_is_in_no_mount(self):
        box = self.sandbox("dev")
        self.assertNotEqual(box.run("test", "-e", product.SOCKET, check=False).returncode, 0)
        self.assertEqual(box.probes("C08"), {"C08": "PASS C08"})

    def test_C10_changes_of_one_sandbox_are_not_seen_by_another(self):
        x, y = self.sandbox("dev"), self.sandbox("dev")
        name = f"/etc/{product.unique('file')}"
        x.sh('touch "$1" && rm /etc/group && echo changed >/etc/hostname', name)
        for other in (y, self.sandbox("dev")):
            self.assertEqual(other.sh('ls "$1" /etc/group', name, check=False).stdout, "/etc/group\n")
            self.assertNotIn("changed", other.sh("cat /etc/hostname; true").stdout)

    def test_C13_uptime_is_the_sandboxs_own(self):
        host = float(pathlib.Path("/proc/uptime").read_text().split()[0])
        if host < 1800:
            self.skipTest("the host has not been up long enough to tell")
        inside = float(self.sandbox("dev").run("cat", "/proc/uptime").stdout.split()[0])
        self.assertLess(inside, host / 2)
