"""Checks tokens. PyJWT checks the signature, times, issuer and audience. This module checks the rest, where PyJWT is
too lenient for bearer tokens."""

import base64
import binascii
import json
import re

import jwt

from plugin.errors import Refused, clip
from provider import Provider

LONGEST = 64 << 10
LEEWAY = 30  # seconds that clocks may differ
LATEST = 253402300799  # the last second of the year 9999
TYPES = ("", "jwt", "at+jwt")

REASONS = {
    jwt.ExpiredSignatureError: "has expired",
    jwt.ImmatureSignatureError: "is not valid yet",
    jwt.InvalidIssuerError: "is from another issuer",
    jwt.InvalidAudienceError: "is for another audience",
    jwt.InvalidSignatureError: "has a signature that is not the provider's",
}


async def check(provider: Provider, token: str, audiences: list[str]) -> dict:
    """Returns the claims of a token that the provider signed, that is valid now, and that is for one
    of `audiences` (any, if empty). Raises Refused, or Unavailable if the adapter cannot tell."""
    header = read(token)
    problem: jwt.PyJWTError | None = None
    for key in await provider.find(header.get("kid", "")):
        try:
            return jwt.decode(
                token,
                key,
                algorithms=["RS256"],  # never trust the token's own choice
                issuer=provider.issuer,
                audience=audiences or None,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "sub"], "verify_aud": bool(audiences)},
            )
        except jwt.PyJWTError as error:
            problem = error
    reasons = [reason for kind, reason in REASONS.items() if isinstance(problem, kind)]
    raise Refused("the token " + (reasons[0] if reasons else "lacks a claim or has a malformed one"))


def read(token: str) -> dict:
    """Splits a token and returns its header. Refuses tokens that would be bad whatever key signed them."""
    parts = token.split(".")
    if len(token) > LONGEST or len(parts) != 3:
        raise Refused("the token is not a compact JWS")
    header, claims = decode(parts[0]), decode(parts[1])
    unbase64(parts[2])
    if header.get("alg") != "RS256":
        raise Refused(f"the token's algorithm is {clip(header.get('alg'))}, not RS256")
    if "crit" in header or "b64" in header:
        raise Refused("the token has critical headers")
    kind = header.get("typ", "")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in TYPES:
        raise Refused(f"the token is a {clip(kind)}, not a JWT")
    if not isinstance(header.get("kid", ""), str):
        raise Refused("the token's key id is not a string")
    check_claims(claims)
    return header


def check_claims(claims: dict) -> None:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject.encode(errors="replace")) <= 255:
        raise Refused("the token has no subject of 1 to 255 bytes")
    if "cnf" in claims:
        raise Refused("the token is bound to a key (cnf), so it is not a bearer token")
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
            raise Refused(f"the token's {name} is not a time in seconds")


def decode(part: str) -> dict:
    try:
        value = json.loads(unbase64(part))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused("the token's header or payload is not a JSON object")
    return value


def unbase64(part: str) -> bytes:
    """Decodes strictly, because Python's own decoder skips invalid characters."""
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", part) or base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise Refused("the token is not a compact JWS")
    return raw
