"""Tokens like the server's, made outside of it: with its own key, read from its files, or with none."""

import base64
import hashlib
import hmac
import json
import pathlib
import subprocess
import tempfile

# PKCS #8 for an Ed25519 seed (RFC 8410).
SEED_PREFIX = bytes.fromhex("302e020100300506032b657004220420")
PUBLIC_PREFIX = bytes.fromhex("302a300506032b6570032100")


def encode(data):
    if not isinstance(data, bytes):
        data = json.dumps(data, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def hkdf(secret, info):
    """HKDF-SHA256 (RFC 5869) with an empty salt, one block of it."""
    key = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(key, info + b"\x01", hashlib.sha256)


def signing_seed(data_dir):
    return hkdf((pathlib.Path(data_dir) / "state/master.key").read_bytes(), b"atoll/v1/token-signing")


def ed25519(seed, message):
    with tempfile.TemporaryDirectory(prefix="atoll-sign-") as folder:
        key, text = pathlib.Path(folder) / "key", pathlib.Path(folder) / "text"
        key.write_bytes(SEED_PREFIX + seed)
        text.write_bytes(message)
        command = ["openssl", "pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", key, "-in", text]
        return subprocess.run(command, capture_output=True, check=True).stdout


def public_of(seed):
    """The raw public key."""
    command = ["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"]
    return subprocess.run(command, input=SEED_PREFIX + seed, capture_output=True, check=True).stdout[-32:]


def pem_of(public):
    body = base64.b64encode(PUBLIC_PREFIX + public).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n".encode()


def kid_of(public):
    """RFC 7638."""
    members = f'{{"crv":"Ed25519","kty":"OKP","x":"{encode(public)}"}}'
    return encode(hashlib.sha256(members.encode()).digest())


def join(header, claims, sign):
    """`sign` makes the signature of the signed text; header and claims are objects, or bytes as they are."""
    text = f"{encode(header)}.{encode(claims)}"
    return f"{text}.{encode(sign(text.encode()))}"
