#!/usr/bin/env python3
"""The same network where the kernel lets no BPF program steer: what holds must hold there too."""

import test_network
import test_network_attacks
from fixture import http, main

REDIRECTION = ("--egress-steering", "redirection")


class Policies(test_network.Policies):
    server_more = REDIRECTION


class Changes(test_network.Changes):
    server_more = REDIRECTION


class Addresses(test_network_attacks.Addresses):
    server_more = REDIRECTION


class Names(test_network_attacks.Names):
    server_more = REDIRECTION

    def test_no_way_to_the_gate_itself(self):
        box = self.box("allow-all")
        connect = "import socket,sys;s=socket.create_connection((sys.argv[1],1),5);s.sendall(b'x');print(s.recv(9))"
        for address in ("127.0.0.1", "::1"):
            done = self.python(box, connect, address)
            self.assertNotEqual(done["exitCode"], 0, done)
            self.assertIn("reset", done["stderr"].lower())
        self.assertEqual(http("GET", "/health").status, 200)


del test_network, test_network_attacks


if __name__ == "__main__":
    main()
