"""Programs as people use them, unchanged, through the gate."""

import json
import shutil
import subprocess
import tempfile

from fixture import http, main
from internet import run
from net_case import NetCase

RULE = {"transform": [{"headers": {"X-Token": "${CLIENT_KEY}"}}]}
POLICY = {"allow": {"api.allowed.test": [RULE], "index.test": [RULE], "allowed.test": [], "h2.test:2443": []}}


class Clients(NetCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = cls.internet.home / "files"
        cls.make_index()

    @classmethod
    def make_index(cls):
        """A package for pip, one for npm, and a repository for git, as files."""
        simple = cls.files / "simple" / "tiny"
        simple.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as build:
            wheel = simple / "tiny-1.0-py3-none-any.whl"
            code = (
                "import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1],'w')\nz.writestr('tiny.py','answer=42\\n')\n"
                "i='tiny-1.0.dist-info/'\nz.writestr(i+'METADATA','Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')\n"
                "z.writestr(i+'WHEEL','Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
                "z.writestr(i+'RECORD','')\nz.close()"
            )
            run("python3", "-c", code, wheel)
            run("git", "init", "-q", "-b", "main", build)
            git = ["git", "-C", build, "-c", "user.name=a", "-c", "user.email=a@b"]
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
            run("git", "clone", "-q", "--bare", build, cls.files / "repo.git")
            run("git", "-C", cls.files / "repo.git", "update-server-info")
        (simple / "index.html").write_text('<a href="tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>')
        package = cls.files / "npm-source" / "package"
        package.mkdir(parents=True)
        (package / "package.json").write_text('{"name":"tiny","version":"1.0.0","main":"i.js"}')
        (package / "i.js").write_text("module.exports=42")
        run("tar", "-czf", cls.files / "tiny.tgz", "-C", package.parent, "package")
        dist = {"tarball": "https://index.test/tiny.tgz"}
        version = {"name": "tiny", "version": "1.0.0", "dist": dist}
        about = {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        (cls.files / "tiny").write_text(json.dumps(about))

    def setUp(self):
        super().setUp()
        http("PUT", "/v1/secrets/CLIENT_KEY", {"value": "client-key-0123456789"})
        self.sandbox = self.box(POLICY)

    def sh(self, script, timeout=120):
        done = self.sandbox.exec("bash", "-lc", script, timeout=timeout)
        self.assertEqual(done["exitCode"], 0, f"{script}:\n{done['stdout']}\n{done['stderr']}")
        return done["stdout"]

    def need(self, program):
        if self.sandbox.exec("bash", "-lc", f"command -v {program}")["exitCode"] != 0:
            self.skipTest(f"the template has no {program}")

    def test_curl(self):
        self.sh("curl -sSf --http1.1 https://api.allowed.test/echo")
        self.assertEqual(self.sh("curl -skf --http2 https://h2.test:2443/"), "h2 2.0")
        self.sh("curl -sSf --http2 https://api.allowed.test/echo")
        self.sh("head -c 3000000 /dev/zero | curl -sSf -T - https://api.allowed.test/put -H 'Expect:'")
        self.sh("head -c 3000000 /dev/zero > /tmp/z; curl -sSf -d @/tmp/z https://api.allowed.test/post")
        self.assertEqual(self.sh("curl -sSf https://api.allowed.test/big/5000000 | wc -c").strip(), "5000000")
        self.assertEqual(self.sh("curl -ksSf https://allowed.test/big/5000000 | wc -c").strip(), "5000000")

    def test_python(self):
        code = "import urllib.request as u;print(u.urlopen('https://api.allowed.test/echo').status)"
        self.assertEqual(self.sh(f'python3 -c "{code}"').strip(), "200")

    def test_node(self):
        self.need("node")
        code = "fetch('https://api.allowed.test/echo').then(r=>console.log(r.status))"
        self.assertEqual(self.sh(f'node -e "{code}"').strip(), "200")

    def test_git(self):
        self.need("git")
        self.sh("git clone -q https://index.test/repo.git /tmp/r && git -C /tmp/r log --oneline | grep first")

    def test_pip(self):
        self.need("pip3")
        self.sh("pip3 install -q --break-system-packages --index-url https://index.test/simple tiny && python3 -c 'import tiny'")

    def test_npm(self):
        self.need("npm")
        self.sh("cd /tmp && npm install --no-audit --no-fund --registry https://index.test tiny && node -e 'require(\"tiny\")'")

    def test_openssl(self):
        self.need("openssl")
        said = self.sh("echo | openssl s_client -connect api.allowed.test:443 -servername api.allowed.test -verify_return_error 2>&1")
        self.assertIn("Verify return code: 0", said)
        done = self.sandbox.exec("bash", "-c", "echo | openssl s_client -connect allowed.test:443 -servername evil.test 2>&1")
        self.assertIn("access denied", done["stdout"])

    def test_websocket(self):
        code = (
            "import socket,ssl,sys,os\ns=socket.create_connection(('api.allowed.test' if sys.argv[1]=='s' else 'allowed.test',443 if "
            "sys.argv[1]=='s' else 80),5)\n"
            "h='api.allowed.test' if sys.argv[1]=='s' else 'allowed.test'\n"
            "if sys.argv[1]=='s': s=ssl.create_default_context().wrap_socket(s,server_hostname=h)\n"
            "s.sendall(('GET /ws HTTP/1.1\\r\\nHost: '+h+'\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n').encode())\n"
            "f=s.makefile('rb')\nl=f.readline()\nassert b'101' in l,l\nwhile f.readline().strip(): pass\n"
            "m=b'abcd';d=b'hello';s.sendall(bytes([0x81,0x80|len(d)])+m+bytes(c^m[i%4] for i,c in enumerate(d)))\n"
            "print(f.read(7)[2:])"
        )
        for kind in ("s", "p"):
            done = self.python(self.sandbox, code, kind)
            self.assertIn("hello", done["stdout"], done)


if __name__ == "__main__":
    assert shutil.which("git")
    main()
