"""Creates the tokens that the conformance kit requests. It is configured in samples.json."""

import base64
import hashlib
import hmac
import json
import sys
from datetime import datetime

KEY = b"a-key-for-tests-of-32-characters-or-more"  # as in settings.json


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def token(wish: dict) -> str | None:
    """Returns the token for a wish, if it is possible with these tokens."""
    if len(wish.get("audiences") or []) != 1 or any(wish.get(name) for name in ("name", "organizationId", "orgRole", "scopes", "notBefore", "spoil")):
        return None
    expires = int(datetime.fromisoformat(wish["expiresAt"].replace("Z", "+00:00")).timestamp())
    claims = {"sub": wish["subject"], "aud": wish["audiences"][0], "email": wish.get("email", ""), "exp": expires}
    payload = encode(json.dumps(claims).encode())
    return payload + "." + encode(hmac.digest(KEY, payload.encode(), hashlib.sha256))


json.dump({"tokens": [token(wish) for wish in json.load(sys.stdin)["tokens"]]}, sys.stdout)
