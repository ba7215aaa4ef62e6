"""An OpenID provider: its metadata and its keys."""

import json
import ssl
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from cache import TIMEOUT, Cached
from plugin.errors import Refused, clip
from settings import check_url, is_loopback

DOCUMENT_LIMIT = 256 << 10
KEYS_LIMIT = 512 << 10
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

Keys = dict[str, list[RSAPublicKey]]  # by key id; several may share one


class Provider:
    """The documents that an issuer publishes. They are fetched when they are first needed."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        # No redirects and no proxy, so that requests go only to the configured host.
        self.client = httpx.AsyncClient(
            timeout=TIMEOUT,
            trust_env=False,
            verify=ssl.create_default_context(),
            headers={"Accept": "application/json"},
        )
        self.document = Cached("metadata", self.discover, fresh=HOUR, keep=7 * DAY)
        self.keys = Cached("keys", self.fetch_keys, fresh=15 * MINUTE, keep=DAY)

    async def close(self) -> None:
        await self.client.aclose()

    async def ask(self, method: str, address: str, limit: int, **more) -> tuple[int, bytes]:
        """Returns the status and body of a response, which may have at most `limit` bytes."""
        async with self.client.stream(method, address, **more) as answer:
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > limit:
                    raise ValueError(f"{address} is larger than {limit} bytes")
            return answer.status_code, bytes(body)

    async def read(self, address: str, limit: int) -> bytes:
        status, body = await self.ask("GET", address, limit)
        if status != httpx.codes.OK:
            raise ValueError(f"{address} returned {status}")
        return body

    async def discover(self) -> tuple[str, dict]:
        """Returns the metadata, both as the provider wrote it and parsed."""
        problems = []
        for place in places(self.issuer):
            try:
                raw = (await self.read(place, DOCUMENT_LIMIT)).decode()
                document = json.loads(raw)
                self.check(place, document)
            except httpx.TransportError as error:  # the other places are on the same host
                problems.append(f"{place}: {type(error).__name__}")
                break
            except (ValueError, RecursionError) as error:
                problems.append(str(error))
            else:
                return raw, document
        raise ValueError("; ".join(problems))

    def check(self, place: str, document: object) -> None:
        """Checks that a document is for the issuer (RFC 8414 section 3.3: identical, not equivalent)."""
        if not isinstance(document, dict) or document.get("issuer") != self.issuer:
            raise ValueError(f"{place} is not about the issuer {self.issuer}: write it exactly as the provider does")
        for name in ("jwks_uri", "authorization_endpoint", "token_endpoint"):
            complaint = self.complaint(document.get(name, ""))
            if complaint and (name in document or name == "jwks_uri"):
                raise ValueError(f"{place}: {name} {complaint}")

    def complaint(self, address: object) -> str:
        """Returns what is wrong with an address from the provider; it may have a query."""
        if not isinstance(address, str):
            return "must be a string"
        if is_loopback(host(address)) and not is_loopback(host(self.issuer)):
            return "is on loopback although the issuer is not"
        return check_url(address.partition("?")[0])

    async def fetch_keys(self) -> Keys:
        _, document = await self.document.get()
        keys: Keys = {}
        for jwk in json.loads(await self.read(document["jwks_uri"], KEYS_LIMIT))["keys"]:
            key = usable(jwk)
            if key:
                keys.setdefault(jwk.get("kid", ""), []).append(key)
        if not keys:  # a broken answer must not replace good keys
            raise ValueError("the key set has no RSA key of 2048 bits or more for RS256 signatures")
        return keys

    async def find(self, kid: str) -> list[RSAPublicKey]:
        """Returns the keys with that id. For an unknown id, it fetches the keys again, but not too often."""
        found = lookup(await self.keys.get(), kid) or lookup(await self.keys.renew(), kid)
        if not found:
            raise Refused(f"the provider has no key {clip(kid)}")
        return found


def places(issuer: str) -> list[str]:
    """Returns where metadata may be: RFC 8414, then OpenID Connect Discovery, inserted and appended."""
    url = urlsplit(issuer)
    base, path = f"{url.scheme}://{url.netloc}", url.path.rstrip("/")
    found = [f"{base}/.well-known/oauth-authorization-server{path}", f"{base}/.well-known/openid-configuration{path}"]
    return found + ([f"{base}{path}/.well-known/openid-configuration"] if path else [])


def host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def usable(jwk: object) -> RSAPublicKey | None:
    """Reads a key that may verify RS256 signatures. It uses only the public numbers."""
    if not isinstance(jwk, dict) or jwk.get("kty") != "RSA" or not isinstance(jwk.get("kid", ""), str):
        return None
    if jwk.get("use", "sig") != "sig" or jwk.get("alg", "RS256") != "RS256":
        return None
    try:
        if "verify" not in jwk.get("key_ops", ["verify"]):
            return None
        key = PyJWK({"kty": "RSA", "n": jwk.get("n"), "e": jwk.get("e")}, algorithm="RS256").key
    except (PyJWTError, ValueError, TypeError):
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size >= 2048 else None


def lookup(keys: Keys, kid: str) -> list[RSAPublicKey]:
    """Returns the keys with that id. Without an id, returns the only key, if there is just one."""
    if kid:
        return keys.get(kid, [])
    every = [key for some in keys.values() for key in some]
    return every if len(every) == 1 else []
