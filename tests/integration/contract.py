"""The server's own description of its API (docs/api/openapi.yaml), as requests that can be sent."""

import http.client
import json
import urllib.parse

from product import Reply, multipart

METHODS = ("get", "put", "post", "delete", "patch")
SANDBOX_BASES = ("/v1/sandboxes/{id}", "/v1/sidecar-proxy/{id}", "/runtime/{id}")
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
BINARY_BODIES = {"application/octet-stream": b"text", "application/x-tar": bytes(1024)}


class Operation:
    """One method of one path, with the least that it takes."""

    def __init__(self, document, path, item, method):
        self.document, self.path, self.method = document, path, method.upper()
        self.entry = item[method]
        self.id = self.entry["operationId"]
        self.access = self.entry["x-atoll-access"]
        self.websocket = self.entry.get("x-atoll-websocket", False)
        self.of_sandbox = path.startswith(SANDBOX_BASES)
        self.statuses = {int(status) for status in self.entry["responses"]}
        parameters = item.get("parameters", []) + self.entry.get("parameters", [])
        self.parameters = [self.resolve(parameter) for parameter in parameters]

    def __str__(self):
        return f"{self.method} {self.path}"

    def resolve(self, node):
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def examples(self, place):
        found = {}
        for parameter in self.parameters:
            schema = self.resolve(parameter["schema"])
            if parameter["in"] == place and "example" in schema:
                found[parameter["name"]] = schema["example"]
        return found

    def target(self, values, query):
        path = self.path
        for name, value in {**self.examples("path"), **values}.items():
            path = path.replace("{" + name + "}", urllib.parse.quote(str(value)))
        assert "{" not in path, f"no value for a parameter of {self}"
        pairs = {**self.examples("query"), **query}
        text = urllib.parse.urlencode({name: json.dumps(v) if isinstance(v, bool) else v for name, v in pairs.items()})
        return path + ("?" + text if text else "")

    def body(self, fields):
        """The body and its headers. `fields` stand instead of examples."""
        content = self.entry.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            properties = self.resolve(content["application/json"]["schema"]).get("properties", {})
            known = {name: self.resolve(one) for name, one in properties.items()}
            values = {name: one["example"] for name, one in known.items() if "example" in one}
            return json.dumps({**values, **fields}).encode(), {"Content-Type": "application/json"}
        if "multipart/form-data" in content:
            return multipart({"path": "/tmp/example"}, "file", "example", BINARY_BODIES["application/x-tar"])
        for kind, data in BINARY_BODIES.items():
            if kind in content:
                return data, {"Content-Type": kind}
        return None, {}


def operations(document):
    return [
        Operation(document, path, item, method)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]


class Port:
    """The server's TCP port. Streams are not read: the status is enough."""

    def __init__(self, url):
        address = urllib.parse.urlparse(url)
        self.host, self.port = address.hostname, address.port

    def send(self, method, target, body=None, headers=None, timeout=20):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, target, body, headers or {})
            reply = connection.getresponse()
            whole = reply.status >= 400 or reply.headers.get_content_type() == "application/json"
            return Reply(reply.status, reply.headers, reply.read() if whole else b"")
        finally:
            connection.close()

    def get(self, target, **headers):
        return self.send("GET", target, headers=headers)

    def call(self, operation, values, credential, fields=None, **more_headers):
        """`credential` adds itself to a query and to headers."""
        query, headers = {}, dict(more_headers)
        credential(query, headers)
        if operation.websocket:
            headers.update(HANDSHAKE)
        body, kind = operation.body(fields or {})
        return self.send(operation.method, operation.target(values, query), body, {**headers, **kind})
