"""The handshake of go-plugin, as the comments of ropewalk/plugin/v1/plugin.proto describe it."""

import base64
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

COOKIE = "ROPEWALK_PLUGIN"
PROTOCOL = 1  # the version of ropewalk.<kind>.v1


def refuse(env: Mapping[str, str], kind: str) -> str:
    """Returns the reason why this process must not serve, or an empty string."""
    wanted = env.get(COOKIE, "")
    if not wanted:
        return (
            f"this is a Ropewalk plugin of kind {kind}; a server starts it if its configuration names it, "
            "and `ropewalk plugin test` checks it"
        )
    if wanted != kind:
        return f"this is a plugin of kind {kind}, but it was started as a plugin of kind {wanted}"
    versions = env.get("PLUGIN_PROTOCOL_VERSIONS", str(PROTOCOL)).split(",")
    if str(PROTOCOL) not in versions:
        return f"this plugin speaks protocol version {PROTOCOL}; the server speaks {', '.join(versions)}"
    return ""


@dataclass(frozen=True)
class Place:
    """Where the plugin listens: a unix socket in a directory that other users cannot open."""

    path: str
    own: bool  # this process created the directory

    @staticmethod
    def choose() -> "Place":
        directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR", "")
        own = not directory
        if own:
            directory = tempfile.mkdtemp(prefix="ropewalk")
        return Place(os.path.join(directory, f"plugin{os.getpid()}"), own)

    @property
    def target(self) -> str:
        return "unix:" + self.path

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        with contextlib.suppress(OSError):
            if self.own:
                os.rmdir(os.path.dirname(self.path))


@dataclass(frozen=True)
class Security:
    """TLS for this process: its own key and certificate, and the only client that it accepts."""

    key: bytes  # PEM
    certificate: bytes  # PEM
    client: bytes  # PEM
    field: str  # the sixth field of the handshake line

    @staticmethod
    def make(client: str) -> "Security | None":
        """Creates a certificate if the server has passed its own; otherwise returns None."""
        if not client:
            return None
        # Not P-521, which go-plugin itself uses, because gRPC for Python does not support that curve.
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(timezone.utc)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + timedelta(days=365 * 30))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(key, hashes.SHA256())
        )
        der = certificate.public_bytes(serialization.Encoding.DER)
        return Security(
            key=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            certificate=certificate.public_bytes(serialization.Encoding.PEM),
            client=client.encode(),
            field=base64.b64encode(der).decode().rstrip("="),
        )


def announce(place: Place, security: Security | None) -> None:
    """Prints the handshake line. Anything printed later goes to the log."""
    field = security.field if security else ""
    print(f"1|{PROTOCOL}|unix|{place.path}|grpc|{field}", flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
