#!/usr/bin/env python3
"""Scoped tokens that the server has not made, or not for this: all are refused, and the honest one of each kind is not."""

import base64
import hashlib
import hmac
import json
import os
import time

import fixture
import forgery
from contract import Port
from fixture import AtollCase, http
from forgery import decode, encode, join


class Forgery(AtollCase):
    server_options = {"listen": "127.0.0.1:0"}

    def setUp(self):
        super().setUp()
        lines = [json.loads(line) for line in fixture.read_text(self.server.log).splitlines() if '"url"' in line]
        self.port = Port(lines[-1]["url"])
        self.box = self.create()
        self.honest = http("POST", self.box.path("/tokens"), {"scope": "read-only"}).json["token"]
        head, body, self.signature = self.honest.split(".")
        self.header, self.claims = json.loads(decode(head)), json.loads(decode(body))
        self.seed = forgery.signing_seed(self.server.data)
        self.public = forgery.public_of(self.seed)

    def sign(self, text):
        return forgery.ed25519(self.seed, text)

    def status(self, token, **headers):
        path = f"/v1/sidecar-proxy/{self.box.id}/process"
        return self.port.get(path, Authorization=f"Bearer {token}", **headers)

    def assert_refused(self, tokens):
        for name, token in tokens.items():
            with self.subTest(token=name):
                reply = self.status(token)
                self.assert_error(reply, 401, "AUTH_ERROR")
                for part in token.split("."):
                    if len(part) > 8:
                        self.assertNotIn(part.encode(), reply.body, "nothing of the token is repeated")
        self.assertEqual(self.status(self.honest).status, 200, "the honest token is still good")

    def signed(self, header=None, claims=None, without=()):
        """With the server's own key: only what is said here is wrong with it."""
        merged = {**self.claims, **(claims or {})}
        return join({**self.header, **(header or {})}, {k: v for k, v in merged.items() if k not in without}, self.sign)

    def test_what_is_signed_here_is_good(self):
        """The control of all that follows: this test can make tokens that pass."""
        keys = self.port.get("/.well-known/jwks.json").json["keys"]
        self.assertEqual([(key["x"], key["kid"]) for key in keys], [(encode(self.public), self.header["kid"])])
        self.assertEqual(forgery.kid_of(self.public), self.header["kid"])
        self.assertEqual(join(self.header, self.claims, self.sign).split(".")[2], encode(self.sign(
            f"{encode(self.header)}.{encode(self.claims)}".encode())))  # fmt: skip
        now = int(time.time())
        for name, token in {
            "as it was": self.signed(),
            "made just now": self.signed(claims={"iat": now, "exp": now + 60}),
            "another scope": self.signed(claims={"scope": "project"}),
            "with nbf": self.signed(claims={"nbf": now}),
            "no typ": join({k: v for k, v in self.header.items() if k != "typ"}, self.claims, self.sign),
        }.items():
            with self.subTest(token=name):
                self.assertEqual(self.status(token).status, 200)

    def test_algorithms(self):
        tokens = {}
        for name in ("none", "None", "NONE", "nOnE", ""):
            for signature in (b"", decode(self.signature)):
                tokens[f"alg {name!r}, {len(signature)} bytes"] = join(
                    {**self.header, "alg": name}, self.claims, lambda _, s=signature: s)  # fmt: skip
        secrets = {
            "public key": self.public,
            "x": encode(self.public).encode(),
            "PEM": forgery.pem_of(self.public),
            "JWKS": self.port.get("/.well-known/jwks.json").body,
            "nothing": b"",
        }
        for name, secret in secrets.items():
            for alg, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
                mac = lambda text, s=secret, d=digest: hmac.digest(s, text, d)  # noqa: E731
                tokens[f"{alg} with the {name}"] = join({**self.header, "alg": alg}, self.claims, mac)
                tokens[f"{alg} called EdDSA, with the {name}"] = join(self.header, self.claims, mac)
        for alg in ("ES256", "RS256", "Ed25519", "eddsa", "EdDSA ", None, 1, ["EdDSA"], {"a": 1}):
            tokens[f"alg {alg!r}"] = join({**self.header, "alg": alg}, self.claims, self.sign)
        tokens["no alg"] = join({k: v for k, v in self.header.items() if k != "alg"}, self.claims, self.sign)
        self.assert_refused(tokens)

    def test_keys(self):
        mine = os.urandom(32)
        public = forgery.public_of(mine)
        by_me = lambda text: forgery.ed25519(mine, text)  # noqa: E731
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": encode(public), "kid": self.header["kid"]}
        tokens = {
            "another key under its kid": join(self.header, self.claims, by_me),
            "another key under its own kid": join({**self.header, "kid": forgery.kid_of(public)}, self.claims, by_me),
            "jwk in the header": join({**self.header, "jwk": jwk}, self.claims, by_me),
            "jku": join({**self.header, "jku": "http://127.0.0.1:1/keys"}, self.claims, by_me),
            "x5u": join({**self.header, "x5u": "http://127.0.0.1:1/keys"}, self.claims, by_me),
            "crit": self.signed(header={"crit": ["exp"]}),
            "b64": self.signed(header={"b64": False, "crit": ["b64"]}),
            "zip": self.signed(header={"zip": "DEF"}),
            "no kid": join({k: v for k, v in self.header.items() if k != "kid"}, self.claims, self.sign),
            "typ": self.signed(header={"typ": "at+jwt"}),
        }
        kid = self.header["kid"]
        for bad in ("", kid[:-1], kid + "A", kid.lower(), f" {kid}", f"{kid}\x00", "../../../../dev/null", "/dev/null",
                    "' OR '1'='1", "*", "0", None, 0, [kid], {"kid": kid}):  # fmt: skip
            tokens[f"kid {bad!r}"] = self.signed(header={"kid": bad})
        self.assert_refused(tokens)

    def test_claims(self):
        now, tokens = int(time.time()), {}
        wrong = {
            "iss": ["", "evil", "Atoll", None, 1, ["atoll"]],
            "aud": ["", "atoll", "atoll-control", None, ["atoll-runtime"], ["atoll-runtime", "x"]],
            "typ": ["", "api", "Sidecar", None],
            "scope": ["", "admin", "write", "read-only project", None, ["read-only"], "*"],
            "sbx": ["", "other", "*", None, self.box.id.upper(), self.box.id + " "],
            "gen": ["", "0", "*", None, self.claims["gen"][:-1]],
            "exp": [now - 1, now, 0, -1, None, str(now + 60), now + 0.5, 1e300, now + 10**9],
            "iat": [now + 3600, -1, None, str(now), now - 10**6],
            "nbf": [now + 3600, "now"],
            "jti": [None, 1],
            "sub": [None, 1],
            "role": ["admin"],
        }
        for name, values in wrong.items():
            for value in values:
                tokens[f"{name} {value!r}"] = self.signed(claims={name: value})
        for name in self.claims:
            tokens[f"no {name}"] = self.signed(without=(name,))
        tokens["expired"] = self.signed(claims={"iat": now - 120, "exp": now - 60})
        doubled = json.dumps(self.claims)[:-1] + ', "scope": "project"}'
        tokens["scope twice"] = join(self.header, doubled.encode(), self.sign)
        for name, body in {"a list": b"[]", "null": b"null", "nothing": b"", "cut": json.dumps(self.claims).encode()[:-1],
                           "more": json.dumps(self.claims).encode() + b"{}"}.items():  # fmt: skip
            tokens[f"claims are {name}"] = join(self.header, body, self.sign)
        self.assert_refused(tokens)

    def test_spellings(self):
        """One token has one text."""
        head, body, signature = self.honest.split(".")
        standard = base64.b64encode(decode(signature)).decode()
        raw = decode(signature)
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        last = alphabet[alphabet.index(signature[-1]) ^ 1]
        order = (2**252 + 27742317777372353535851937790883648493).to_bytes(32, "little")
        larger = (int.from_bytes(raw[32:], "little") + int.from_bytes(order, "little")).to_bytes(32, "little")
        tokens = {
            "padding": f"{head}.{body}.{signature}==",
            "standard alphabet": f"{head}.{body}.{standard}",
            "unused bits": f"{head}.{body}.{signature[:-1]}{last}",
            "malleable signature": f"{head}.{body}.{encode(raw[:32] + larger)}",
            "zero signature": f"{head}.{body}.{encode(bytes(64))}",
            "flipped bit": f"{head}.{body}.{encode(bytes([raw[0] ^ 1]) + raw[1:])}",
            "claims of another": f"{head}.{encode({**self.claims, 'scope': 'project'})}.{signature}",
            "no signature": f"{head}.{body}.",
            "no claims": f"{head}..{signature}",
            "no header": f".{body}.{signature}",
            "dots": "..",
            "four parts": f"{head}.{body}.{signature}.{signature}",
            "two parts": f"{head}.{body}",
            "five parts": f"{head}.{body}.{signature}.{head}.{body}",
            "blank inside": f"{head}. {body}.{signature}",
            "not base64": f"{head}.{body}.!!!!",
            "too long": self.signed(claims={"jti": "x" * 5000}),
        }
        for size in range(1, len(self.honest), 37):
            tokens[f"its first {size}"] = self.honest[:size]
        for size in range(1, 8):
            tokens[f"without its last {size}"] = self.honest[:-size]
        self.assert_refused(tokens)

    def test_the_same_in_a_url_and_a_subprotocol(self):
        path = f"/v1/sidecar-proxy/{self.box.id}/process"
        bad = join({**self.header, "alg": "none"}, self.claims, lambda _: b"")
        for token, status in ((self.honest, 200), (bad, 401), (self.honest[:-3], 401), ("", 401)):
            with self.subTest(token=token[-8:]):
                self.assertEqual(self.port.get(f"{path}?token={token}").status, status)
                offered = {"Sec-WebSocket-Protocol": f"bearer.{encode(token.encode())}"}
                self.assertEqual(self.port.get(path, **offered).status, status)
        # The header decides where there are several.
        self.assertEqual(self.port.get(f"{path}?token={self.honest}", Authorization=f"Bearer {bad}").status, 401)

    def test_forged_ones_are_not_refreshed(self):
        path = self.box.path("/tokens/refresh")
        now = int(time.time())
        for name, token, status in (
            ("honest", self.honest, 201),
            ("expired a minute ago", self.signed(claims={"iat": now - 360, "exp": now - 60}), 201),
            ("expired an hour ago", self.signed(claims={"iat": now - 3900, "exp": now - 3600}), 400),
            ("unsigned", join({**self.header, "alg": "none"}, self.claims, lambda _: b""), 400),
            ("another generation", self.signed(claims={"gen": "0"}), 400),
            ("another sandbox", self.signed(claims={"sbx": "other"}), 400),
            ("no token at all", "token", 400),
            ("empty", "", 400),
            ("an API key", (self.server.data / "api-key").read_text().strip(), 400),
        ):
            with self.subTest(token=name):
                reply = http("POST", path, {"token": token})
                self.assertEqual(reply.status, status)
                if status == 400:
                    self.assert_error(reply, 400, "VALIDATION_ERROR", "token")


if __name__ == "__main__":
    fixture.main()
