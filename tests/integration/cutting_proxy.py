"""A connection that breaks: a Unix socket in front of the server's that cuts each connection after so many bytes."""

import contextlib
import os
import selectors
import socket
import threading


class CuttingProxy:
    """Forwards to `target`. Every connection ends, unannounced and with bytes under way, once `limit` bytes have passed
    in one direction; the limit grows by a half each time, so that there is an end to it."""

    def __init__(self, path, target, limit):
        self.path, self.target, self.limit = path, target, limit
        self.cuts = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        os.unlink(self.path)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            threading.Thread(target=self.forward, args=(client, server), daemon=True).start()

    def forward(self, client, server):
        passed = {client: 0, server: 0}
        with client, server, selectors.DefaultSelector() as selector:
            for end in passed:
                selector.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    source = key.fileobj
                    try:
                        data = source.recv(8192)
                        (server if source is client else client).sendall(data)
                    except OSError:
                        return
                    passed[source] += len(data)
                    if not data:
                        return
                    if passed[source] > self.limit:
                        self.cuts += 1
                        self.limit += self.limit // 2
                        return
