"""What listens inside sandboxes in tests of the ways in: run there as `python3 -c SOURCE PORT [ADDRESS]`."""

SOURCE = r'''
import base64, hashlib, http.server, json, socket, socketserver, struct, sys, threading

SENT = [0]
SEEN = []

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_): pass

    def reply(self, status=200, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers: self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                data = self.rfile.read(size)
                self.rfile.readline()
                if size == 0: return
                yield data
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            data = self.rfile.read(min(left, 65536))
            left -= len(data)
            yield data

    def echo(self):
        body = b"".join(self.read_body())
        seen = {"method": self.command, "path": self.requestline.split()[1], "headers": self.headers.items(), "body": body.decode("latin-1"),
                "port": self.server.server_address[1]}
        SEEN.append(seen)
        self.reply(body=json.dumps(seen).encode(), headers=[("Content-Type", "application/json")])

    def do_GET(self):
        path, _, query = self.path.partition("?")
        handler = getattr(self, "get_" + path.strip("/").replace("-", "_"), None)
        return handler(query) if handler else self.echo()

    do_HEAD = do_GET
    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_PROPFIND = echo

    def do_POST(self):
        if self.path == "/digest":
            digest, size = hashlib.sha256(), 0
            for piece in self.read_body():
                digest.update(piece)
                size += len(piece)
            return self.reply(body=json.dumps({"sha256": digest.hexdigest(), "size": size}).encode())
        if self.path == "/too-large":
            self.close_connection = True
            return self.reply(413, b"no")
        self.echo()

    def get_big(self, query):
        size = int(query)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        block = bytes(range(256)) * 256
        SENT[0] = 0
        while SENT[0] < size:
            part = block[: min(len(block), size - SENT[0])]
            self.wfile.write(part)
            SENT[0] += len(part)

    def get_sent(self, _):
        self.reply(body=str(SENT[0]).encode())

    def get_events(self, _):
        """One event, and the rest of the connection's life."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"9\r\ndata: 1\n\n\r\n")
        try:
            ended = self.connection.recv(1) == b""
        except OSError:
            ended = True
        SEEN.append({"ended": ended})
        self.close_connection = True

    def get_seen(self, _):
        self.reply(body=json.dumps(SEEN).encode())

    def get_until_close(self, _):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"until the end")
        self.close_connection = True

    def get_broken(self, _):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True

    def get_not_modified(self, _):
        self.send_response(304)
        self.send_header("Content-Length", "100")
        self.end_headers()

    def get_silent(self, _):
        self.close_connection = True

    def get_page(self, _):
        self.reply(headers=[
            ("Set-Cookie", "plain=1; Path=/"), ("Set-Cookie", "wide=1; Domain=localhost; Path=/; DOMAIN=.localhost"),
            ("Set-Cookie", "__Host-atoll-preview=forged; Path=/; Secure"), ("Service-Worker-Allowed", "/"),
            ("Content-Security-Policy", "default-src 'self'"), ("Clear-Site-Data", '"cookies"'), ("Alt-Svc", 'h3=":1"'),
            ("X-Accel-Redirect", "/v1/keys"), ("X-Sendfile", "/etc/passwd"),
            ("Access-Control-Allow-Origin", "*"), ("X-Own", "1"), ("Connection", "X-Hop"), ("X-Hop", "1"),
        ], body=b"page")

    def get_redirect(self, query):
        self.reply(302, headers=[("Location", query)])

    def get_ws(self, _):
        if self.headers.get("Upgrade", "").lower() != "websocket": return self.reply(400, b"a WebSocket")
        accept = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
        self.end_headers()
        self.close_connection = True
        while self.echo_frame(): pass

    def echo_frame(self):
        head = self.rfile.read(2)
        if len(head) < 2: return False
        size = head[1] & 127
        if size == 126: size, = struct.unpack(">H", self.rfile.read(2))
        elif size == 127: size, = struct.unpack(">Q", self.rfile.read(8))
        mask = self.rfile.read(4)
        data = self.rfile.read(size)
        mask = (mask * (size // 4 + 1))[:size]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
        out = bytes([head[0]])
        if size < 126: out += bytes([size])
        elif size < 65536: out += bytes([126]) + struct.pack(">H", size)
        else: out += bytes([127]) + struct.pack(">Q", size)
        self.wfile.write(out + data)
        return head[0] & 15 != 8

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

address = sys.argv[2] if len(sys.argv) > 2 else "0.0.0.0"
if ":" in address: Server.address_family = socket.AF_INET6
Server((address, int(sys.argv[1])), Handler).serve_forever()
'''

# Sends back what it gets; at the end of that says how much it was.
RAW = r'''
import socket, sys, threading

def serve(peer):
    total = 0
    while data := peer.recv(65536):
        total += len(data)
        peer.sendall(data)
    peer.sendall(b"total %d" % total)
    peer.close()

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
'''
