"""The class of all integration tests."""

import unittest

from box import Box
from leaks import LeakCounter
from product import http
from server import AtollServer


class AtollCase(unittest.TestCase):
    """A server for the class; everything is deleted and counted after each test."""

    server_options = {}
    broken = False

    @classmethod
    def setUpClass(cls):
        cls.broken = False
        cls.server = AtollServer(**cls.server_options)
        cls.addClassCleanup(lambda: cls.server.destroy() if cls.broken else cls.server.close())
        cls.server.start()

    def setUp(self):
        if self.broken:  # by the test before: this one shall not pay for it
            self.server.destroy()
            type(self).server = AtollServer(**self.server_options).start()
            type(self).broken = False
        self.server.use()
        self.leaks = LeakCounter(self.server).start()
        self.addCleanup(self.delete_and_count)  # the first: so it runs last

    def delete_and_count(self):
        type(self).broken = True
        self.server.use()
        self.server.delete_all()
        self.leaks.check()
        self.server.assert_sane()
        type(self).broken = False

    def create(self, **body):
        reply = http("POST", "/v1/sandboxes", body)
        self.assertEqual(reply.status, 201, reply)
        return Box(reply.json["id"])

    def assert_error(self, reply, status, code, *fields):
        self.assertEqual(reply.status, status, reply)
        body = reply.json
        self.assertEqual(body["code"], code, body)
        self.assertEqual(body["error"]["code"], code)
        self.assertFalse(body["success"])
        self.assertEqual(body["error"]["message"], body["message"])
        self.assertTrue(body["message"])
        for field in fields:
            self.assertIn(field, body["error"].get("fields", []))

    def assert_fails(self, done, code=None):
        """A CLI error: one line on standard error, nothing on standard output."""
        error = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
        self.assertNotEqual(done.returncode, 0)
        if code is not None:
            self.assertEqual(done.returncode, code, error)
        self.assertEqual(len(error.splitlines()), 1, f"not one line: {error!r}")
        self.assertTrue(error.startswith("atoll: "), error)
        self.assertFalse(done.stdout)
        return error
