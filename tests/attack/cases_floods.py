"""D19: clients that ask for too much at once. The server stays small, and others are served meanwhile.

Every flood is bounded by itself: in connections, in bytes, and in time."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import socket
import threading
import time

import product
from harness import ProductCase

MB = 1 << 20
MOST_CONNECTIONS = 8192  # the server's limit


def server_pid():
    """Of the process that listens on our socket."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(product.SOCKET)
        # Credentials are those of whoever called listen(), which is the supervisor.
        pid = int.from_bytes(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/comm").read_text() == "atoll-server\n":
            return int(child)
    return pid


def memory_of(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def head(method, path, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


class Floods(ProductCase):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.box = self.sandbox("dev", *product.SMALL)
        self.idle = product.latency_ms(self.box)
        self.pid = server_pid()
        self.memory, self.descriptors = memory_of(self.pid), descriptors_of(self.pid)
        self.crowd = contextlib.ExitStack()
        self.addCleanup(self.crowd.close)

    def connect(self):
        peer = self.crowd.enter_context(socket.socket(socket.AF_UNIX))
        peer.connect(product.SOCKET)  # waits where the queue is full
        peer.settimeout(20)
        return peer

    def assert_served(self):
        """Somebody else, while it lasts. Asked again where it is late, as the host may have been busy by itself; the
        crowd stays."""
        self.assertEqual(product.http("GET", "/health", timeout=5).status, 200)
        limit = 5 * self.idle + 50
        product.wait_until(lambda: product.latency_ms(self.box, 9) < limit, 20, f"a command within {limit:.0f} ms")

    def assert_small(self, megabytes):
        grown = (memory_of(self.pid) - self.memory) / MB
        self.assertLess(grown, megabytes * product.MEMORY_FACTOR, "MiB more than before")

    def assert_back(self):
        """Once they have gone, nothing of them stays."""
        self.crowd.close()
        product.wait_until(lambda: descriptors_of(self.pid) <= self.descriptors + 8, 15, "all connections are closed")
        self.assertEqual(server_pid(), self.pid, "the server died of it")
        self.assert_alive(self.box)

    def test_D19_more_connections_than_there_may_be(self):
        for _ in range(MOST_CONNECTIONS + 500):
            self.connect()
        self.assertLess(descriptors_of(self.pid), self.descriptors + MOST_CONNECTIONS + 100)
        self.assert_served()
        self.assert_small(200)
        self.assert_back()

    def test_D19_connections_that_have_been_used_and_are_kept(self):
        peers = [self.connect() for _ in range(MOST_CONNECTIONS + 100)]
        answered = 0
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(head("GET", "/health"))
                answered += b"200 OK" in peer.recv(4096)
        self.assertGreater(answered, MOST_CONNECTIONS - 100)
        self.assert_served()
        self.assert_back()

    def test_D19_heads_that_never_end(self):
        peers = [self.connect() for _ in range(600)]
        for peer in peers:
            peer.sendall(b"GET /health HTTP/1.1\r\nX-")
        self.assert_served()
        end = time.monotonic() + 25
        waiting = set(peers)
        while waiting and time.monotonic() < end:
            for peer in list(waiting):
                try:
                    peer.sendall(b"a")  # always a little more
                    peer.settimeout(0.001)
                    if peer.recv(4096):
                        waiting.discard(peer)
                except TimeoutError:
                    continue
                except OSError:
                    waiting.discard(peer)
        self.assertFalse(waiting, "the server listens for ever")
        self.assert_back()

    def test_D19_heads_that_are_too_long(self):
        for peer in [self.connect() for _ in range(50)]:
            with contextlib.suppress(OSError):
                peer.sendall(b"GET /health HTTP/1.1\r\n" + b"X-Long: " + b"a" * MB)
                self.assertIn(b"431", peer.recv(4096))
        self.assert_small(50)
        self.assert_back()

    def large_bodies(self, path, count, megabytes, *lines):
        """`count` bodies that announce 80 MiB, send `megabytes` and then stay: answers the statuses that came early."""
        begin = head("POST", path, f"Content-Length: {80 * MB}", *lines)

        def one(peer):
            try:
                peer.sendall(begin)
                for _ in range(megabytes):
                    peer.sendall(b" " * MB)
                peer.settimeout(0.5)
                return peer.recv(4096).split(b" ")[1]
            except TimeoutError:
                return b"waiting"
            except OSError:
                with contextlib.suppress(OSError):
                    return peer.recv(4096).split(b" ")[1]
                return b"closed"

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(one, [self.connect() for _ in range(count)]))

    def test_D19_many_large_bodies(self):
        runtime = f"/v1/sandboxes/{self.box.id}/runtime"
        form = "Content-Type: multipart/form-data; boundary=x"
        for path, lines in ((f"{runtime}/files/write", []), (f"{runtime}/fs/upload", [form])):
            with self.subTest(path):
                statuses = self.large_bodies(path, 32, 40, *lines)
                self.assert_small(600)
                self.assertTrue({b"429", b"413", b"closed"} & set(statuses), statuses)
                self.assert_served()
                self.assert_back()

    def test_D19_bodies_for_nobody(self):
        """No sandbox, no body: it is refused before it is read."""
        statuses = self.large_bodies("/v1/sandboxes/nobody/runtime/fs/upload", 16, 40,
                                     "Content-Type: multipart/form-data; boundary=x")  # fmt: skip
        self.assertLessEqual(set(statuses), {b"404", b"closed", b"429"}, statuses)
        self.assert_small(100)
        self.assert_back()

    def test_D19_many_large_answers_that_nobody_reads(self):
        self.box.sh("head -c 50000000 /dev/zero | tr '\\\\0' x >/tmp/large")
        body = b'{"path":"/tmp/large","encoding":"base64"}'
        request = head("POST", f"/v1/sandboxes/{self.box.id}/runtime/files/read", f"Content-Length: {len(body)}") + body
        peers = [self.connect() for _ in range(32)]
        for peer in peers:
            peer.sendall(request)
        statuses = []
        for peer in peers:
            with contextlib.suppress(TimeoutError):
                peer.settimeout(10)
                statuses.append(peer.recv(4096).split(b" ")[1])
        self.assertIn(b"200", statuses)
        self.assert_small(700)
        self.assert_served()
        self.assert_back()

    def test_D19_requests_without_end_on_one_connection(self):
        """Pipelined, with answers that are never read."""
        peer = self.connect()
        requests = head("GET", "/v1/system") * 1000
        sent = 0
        peer.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while sent < 200 * MB:
                sent += peer.send(requests)
        self.assertLess(sent, 200 * MB, "the server reads on although nobody takes its answers")
        self.assert_small(50)
        self.assert_served()
        self.assert_back()

    def test_D19_many_busy_clients(self):
        stop = threading.Event()

        def hammer():
            count = 0
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(product.SOCKET)
                while not stop.is_set():
                    peer.sendall(head("GET", "/v1/system") * 5)
                    got = b""
                    while got.count(b"HTTP/1.1 200") < 5:
                        got += peer.recv(65536)
                    count += 5
            return count

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            floods = [pool.submit(hammer) for _ in range(8)]
            try:
                self.assert_served()
            finally:
                stop.set()
            self.assertGreater(sum(flood.result(timeout=20) for flood in floods), 100)
        self.assert_back()
