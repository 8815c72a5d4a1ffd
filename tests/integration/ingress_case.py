"""Tests of the ways into sandboxes: a server that listens on TCP, and visitors who name a host."""

import http.client
import json

import ingress_app
from case import AtollCase
from host import read_text
from product import Reply, http as local, wait_until


class IngressCase(AtollCase):
    server_options = {"listen": "127.0.0.1:0"}

    def setUp(self):
        super().setUp()
        self.find_port()
        self.key = (self.server.data / "api-key").read_text().strip()

    def find_port(self):
        lines = [json.loads(line) for line in read_text(self.server.log).splitlines() if '"url"' in line]
        self.tcp = int(lines[-1]["url"].rsplit(":", 1)[1])

    def app(self, box, *ports, address=None):
        """Starts what listens inside; returns once it answers."""
        more = [address] if address else []
        for port in ports or (3000,):
            box.spawn("python3", "-c", ingress_app.SOURCE, str(port), *more)
        for port in ports or (3000,):
            wait_until(lambda port=port: self.visit(box, "/sent", port=port, key=self.key).status == 200, 30, "it listens")

    def box_with_app(self, *ports, **spec):
        box = self.create(**spec)
        self.app(box, *ports)
        return box

    def host(self, box, port=3000):
        return f"{port}-{getattr(box, 'id', box)}.localhost:{self.tcp}"

    def connection(self, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.tcp, timeout=timeout)
        self.addCleanup(connection.close)
        return connection

    def ask(self, host, target, method="GET", body=None, headers=(), connection=None):
        """One request over TCP, with the host's name and headers as they are given."""
        own = connection is None
        connection = connection or self.connection()
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        if isinstance(body, bytes):
            connection.putheader("Content-Length", str(len(body)))
        for name, value in dict(headers).items() if isinstance(headers, dict) else headers:
            connection.putheader(name, value)
        connection.endheaders(body if isinstance(body, bytes) else None)
        response = connection.getresponse()
        reply = Reply(response.status, response.headers, response.read())
        if own:
            connection.close()
        return reply

    def visit(self, box, target="/", port=3000, key=None, **more):
        headers = dict(more.pop("headers", {}))
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return self.ask(self.host(box, port), target, headers=headers, **more)

    def by_path(self, box, target="/", port=3000, key=None, **more):
        headers = dict(more.pop("headers", {}))
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return self.ask(f"127.0.0.1:{self.tcp}", f"/preview/{box.id}/{port}{target}", headers=headers, **more)

    def link(self, box, port=3000, status=201, **body):
        reply = local("POST", box.path("/runtime/preview-links"), {"port": port, **body})
        self.assertEqual(reply.status, status, reply)
        return reply.json["previewLink"] if status == 201 else reply.json

    def links(self, box):
        return local("GET", box.path("/runtime/preview-links")).json["previewLinks"]

    def unlink(self, box, link):
        reply = local("DELETE", box.path(f"/runtime/preview-links/{link['previewId']}"))
        self.assertEqual(reply.status, 200, reply)

    def token_of(self, link):
        return link["url"].partition("?atoll-preview-token=")[2]

    def make_key(self, tenant, role="member"):
        reply = local("POST", "/v1/keys", {"name": "visitor", "tenant": tenant, "role": role})
        self.assertEqual(reply.status, 201, reply)
        return reply.json["key"]

    def status(self, box):
        return box.info()["status"]

    def assert_denied(self, reply, status=401):
        self.assertEqual(reply.status, status, reply)
        self.assertEqual(reply.headers["Atoll-Preview"], "error")
        self.assertEqual(reply.headers["Cache-Control"], "no-store")
