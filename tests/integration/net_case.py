"""Tests with an internet of their own."""

import json

from case import AtollCase
from internet import Internet
from product import http, wait_until
from server import AtollServer


class NetCase(AtollCase):
    """The server runs beside a small internet; sandboxes are asked what they can reach."""

    server_more = ()

    @classmethod
    def setUpClass(cls):
        cls.internet = Internet().start()
        cls.addClassCleanup(cls.internet.close)
        cls.server_options = {"netns": cls.internet.inner, "options": cls.internet.options(*cls.server_more)}
        cls.broken = False
        cls.server = cls.new_server()
        cls.addClassCleanup(lambda: cls.server.destroy() if cls.broken else cls.server.close())
        cls.server.start()

    @classmethod
    def new_server(cls):
        return AtollServer(*cls.internet.options(*cls.server_more), netns=cls.internet.inner)

    def setUp(self):
        if self.broken:
            self.server.destroy()
            type(self).server = self.new_server().start()
            type(self).broken = False
        super().setUp()

    def box(self, network, **more):
        return self.create(network=network, **more)

    def set_network(self, box, policy, status=200):
        reply = http("PUT", box.path("/network"), {"policy": policy})
        self.assertEqual(reply.status, status, reply)
        return reply.json

    def curl(self, box, *arguments, seconds=8):
        """(exit code, body, HTTP status as text)."""
        mark = "\n--status--"
        done = box.exec("curl", "-sS", "-k", "-m", str(seconds), "-w", mark + "%{http_code}", *arguments)
        body, _, status = done["stdout"].partition(mark)
        return done["exitCode"], body, status

    def assert_reaches(self, box, *arguments):
        code, body, status = self.curl(box, *arguments)
        self.assertEqual((code, status), (0, "200"), f"{arguments}: {body}")
        return body

    def assert_refused(self, box, *arguments, seconds=4):
        """Refused, and at once."""
        code, body, status = self.curl(box, *arguments, seconds=seconds)
        self.assertTrue(code != 0 or status in ("400", "403", "405", "421"), f"{arguments}: {status} {body}")
        self.assertNotEqual(code, 28, f"{arguments}: it hangs")
        return body

    def python(self, box, code, *arguments, timeout=60):
        return box.exec("python3", "-c", code, *arguments, timeout=timeout)

    def log(self, box):
        return http("GET", box.path("/network/log")).json["entries"]

    def denial(self, box, **wanted):
        """The entry of a denial with these fields, once it is there."""

        def find():
            for entry in self.log(box):
                if entry["decision"] == "deny" and all(entry[key] == value for key, value in wanted.items()):
                    return entry
            return None

        return wait_until(find, 10, f"a denial with {json.dumps(wanted)}")
