"""A small WebSocket client (RFC 6455) on a Unix socket or TCP: text and binary messages, ping, close."""

import base64
import hashlib
import json
import os
import socket
import struct

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"HTTP {status} {body[:200]!r}")
        self.status, self.body = status, body


class WebSocket:
    def __init__(self, place, target, timeout=20, headers="", host="localhost"):
        """`place`: the path of a socket, or (address, port)."""
        self.socket = socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET)
        self.socket.settimeout(timeout)
        self.socket.connect(place)
        self.buffer = b""
        self.closed = None  # the close code, once it came
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n".encode()
        )
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        if status != 101:
            raise Refused(status, self.buffer)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        assert headers["sec-websocket-accept"] == accept, headers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def fill(self):
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server has hung up")
        self.buffer += part

    def take(self, size):
        while len(self.buffer) < size:
            self.fill()
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part

    def send_frame(self, opcode, data, final=True, masked=True):
        head = bytes([(0x80 if final else 0) | opcode])
        mark = 0x80 if masked else 0
        if len(data) < 126:
            head += bytes([mark | len(data)])
        elif len(data) < 65536:
            head += bytes([mark | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([mark | 127]) + struct.pack(">Q", len(data))
        if masked:
            mask = os.urandom(4)
            head += mask
            data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + data)

    def send_json(self, **message):
        self.send_frame(TEXT, json.dumps(message).encode())

    def send_binary(self, data):
        self.send_frame(BINARY, data)

    def receive(self):
        """(opcode, bytes) of the next message, or None once the server has closed."""
        message, kind = b"", None
        while True:
            first, second = self.take(2)
            assert not second & 0x80, "a server does not mask"
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self.take(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self.take(8))
            data = self.take(size)
            opcode = first & 15
            if opcode == PING:
                self.send_frame(PONG, data)
            elif opcode == CLOSE:
                self.closed = struct.unpack(">H", data[:2])[0] if data else 1005
                return None
            elif opcode != PONG:
                kind = kind or opcode
                message += data
                if first & 0x80:
                    return kind, message
