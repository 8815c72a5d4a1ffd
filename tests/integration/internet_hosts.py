"""The hosts of internet.py: runs in their namespace, with the folder of certificates and logs as its argument."""

import base64
import hashlib
import http.server
import json
import pathlib
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading

TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "attack")]
import internet  # noqa: E402

HOME = pathlib.Path(sys.argv[1])
LOCK = threading.Lock()


def note(file, text):
    with LOCK, (HOME / file).open("a") as log:
        log.write(text + "\n")


def dns_answer(query):
    zone = json.loads((HOME / "zone.json").read_text())
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin1"))
        at += 1 + query[at]
    name = ".".join(labels).lower()
    kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
    note("queries", f"{name} {kind}")
    answers, owner = [], b"\xc0\x0c"
    target = zone["aliases"].get(name)
    if target:
        encoded = b"".join(bytes([len(part)]) + part.encode() for part in target.split(".")) + b"\0"
        answers.append(owner + struct.pack(">HHIH", 5, 1, zone["ttl"], len(encoded)) + encoded)
        owner, name = encoded, target
    for address in zone["hosts"].get(name, []):
        six = ":" in address
        if kind == (28 if six else 1):
            data = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, address)
            answers.append(owner + struct.pack(">HHIH", kind, 1, zone["ttl"], len(data)) + data)
    known = name in zone["hosts"]
    head = query[:2] + struct.pack(">HHHHH", 0x8580 | (0 if known else 3), 1, len(answers), 0, 0)
    return head + query[12 : at + 5] + b"".join(answers)


class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(dns_answer(data), self.client_address)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        if self.path in ("/rejects", "/hangs-up"):
            note("requests", json.dumps({"method": self.command, "path": self.path}))
            if self.path == "/rejects":
                self.reply(b"too large", 413, Connection="close")
            self.close_connection = True
            return None
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length else b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        tls = isinstance(self.connection, ssl.SSLSocket)
        seen = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()), "tls": tls,
                "body": len(body), "host": self.headers.get("Host")}  # fmt: skip
        note("requests", json.dumps(seen))
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.websocket()
        path = self.path.split("?")[0]
        if path == "/echo":
            value = self.headers.get("Authorization", "")
            return self.reply(json.dumps(seen).encode(), X_Echo=value)
        if path == "/chunked-echo":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in json.dumps(seen).encode():
                self.wfile.write(b"1\r\n" + bytes([part]) + b"\r\n")
            return self.wfile.write(b"0\r\n\r\n")
        if path.startswith("/big"):
            return self.reply(b"x" * int(path.rsplit("/", 1)[1]))
        if path == "/slow":
            self.send_response(200)
            self.send_header("Content-Length", "1000000000")
            self.end_headers()
            while True:
                self.wfile.write(b"y" * 1000)
                threading.Event().wait(0.05)
        if path == "/redirect":
            return self.reply(b"", 302, Location="https://evil.test/stolen")
        file = HOME / "files" / path.lstrip("/")
        if file.is_dir():
            file = file / "index.html"
        if path != "/" and file.is_file():
            kind = "text/html" if file.suffix == ".html" else "application/octet-stream"
            return self.reply(file.read_bytes(), Content_Type=kind)
        return self.reply(f"hello from {self.headers.get('Host')}\n".encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = serve

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        head = self.rfile.read(2)
        size = head[1] & 127
        mask = self.rfile.read(4)
        data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.rfile.read(size)))
        self.wfile.write(bytes([0x81, len(data)]) + data)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass


class Server6(Server):
    address_family = socket.AF_INET6


class Opaque(socketserver.BaseRequestHandler):
    """Speaks first, then echoes."""

    def handle(self):
        self.request.sendall(b"ready\n")
        while data := self.request.recv(4096):
            self.request.sendall(data)


def contexts():
    made = {}
    for name in ("good", "badcert", "expired"):
        made[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made[name].load_cert_chain(HOME / f"{name}.pem", HOME / f"{name}.key")

    def choose(connection, name, _):
        connection.context = made.get((name or "").split(".")[0], made["good"])

    made["good"].sni_callback = choose
    return made["good"]


class Tls(Server):
    """The handshake is the connection's thread's business."""

    context = None

    def finish_request(self, request, client_address):
        with self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)


class Tls6(Tls):
    address_family = socket.AF_INET6


def start(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()


def wait_for(address, port):
    for _ in range(200):
        try:
            return socket.create_connection((address, port), 1).close()
        except OSError:
            threading.Event().wait(0.1)
    raise SystemExit(f"nobody listens on {address}:{port}")


def main():
    socketserver.ThreadingUDPServer.daemon_threads = True
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    start(socketserver.ThreadingUDPServer((internet.DNS, 53), Udp))
    Tls.context = contexts()
    for address in (internet.WEB, internet.OTHER, internet.EVIL, internet.PRIVATE, internet.METADATA):
        start(Server((address, 80), Web))
        start(Tls((address, 443), Web))
    start(Server6((internet.WEB6, 80), Web))
    start(Tls6((internet.WEB6, 443), Web))
    start(Tls((internet.WEB, 8443), Web))
    start(socketserver.ThreadingTCPServer((internet.WEB, 5432), Opaque))
    node = None
    if shutil.which("node"):
        code = (
            "const h=require('http2'),f=require('fs');h.createSecureServer({key:f.readFileSync(process.argv[1]+'/good.key'),"
            "cert:f.readFileSync(process.argv[1]+'/good.pem')},(q,s)=>s.end('h2 '+q.httpVersion)).listen(2443,process.argv[2])"
        )
        node = subprocess.Popen(["node", "-e", code, str(HOME), internet.WEB])
        wait_for(internet.WEB, 2443)
    (HOME / "ready").touch()
    try:
        threading.Event().wait()
    finally:
        if node:
            node.kill()


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main()
