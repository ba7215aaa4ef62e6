"""ropewalk.auth.v1: verifies tokens and logs people in."""

import hmac
import json
import logging
from urllib.parse import urlencode

import httpx
from google.protobuf.timestamp_pb2 import Timestamp

from plugin.errors import Invalid, Refused, Unavailable, Unimplemented, clip
from plugin.serve import Plugin
from provider import DOCUMENT_LIMIT, Provider
from ropewalk.auth.v1 import auth_pb2, auth_pb2_grpc
from settings import Settings
from tokens import check


log = logging.getLogger(__name__)


class Adapter(Plugin, auth_pb2_grpc.AuthServiceServicer, auth_pb2_grpc.LoginServiceServicer):
    """Implements both services, once `configure` has been called."""

    kind = "auth"
    name = "python"
    version = "1.0.0"
    capabilities = ("login",)
    settings_type = Settings
    provider: Provider | None = None

    async def configure(self, taken: Settings, data_dir: str) -> None:
        """Stores the settings. It does not contact the provider, which may be unavailable."""
        self.settings, self.provider = taken, Provider(taken.issuer)
        log.info("The adapter is ready.", extra={"fields": {"issuer": taken.issuer, "login": taken.login}})

    def add_to(self, server) -> None:
        auth_pb2_grpc.add_AuthServiceServicer_to_server(self, server)
        auth_pb2_grpc.add_LoginServiceServicer_to_server(self, server)

    async def close(self) -> None:
        if self.provider:
            await self.provider.close()

    async def Describe(self, request, context):
        s = self.settings
        audiences = [*s.audiences, *([s.clientId] if s.clientId else [])]
        return auth_pb2.DescribeResponse(
            issuer=s.issuer, authorization_servers=[s.issuer], audiences=audiences, login=s.login
        )

    async def Verify(self, request, context):
        claims = await check(self.provider, request.token, list(request.audiences))
        return auth_pb2.VerifyResponse(identity=self.identity(claims))

    async def Metadata(self, request, context):
        raw, _ = await self.provider.document.get()
        return auth_pb2.MetadataResponse(document_json=raw)

    async def AuthorizeUrl(self, request, context):
        document = await self.login_endpoints()
        if not (request.state and request.nonce and request.code_challenge):
            raise Invalid("a login needs a state, a nonce and a code challenge")
        address = document["authorization_endpoint"]
        query = {
            "response_type": "code",
            "client_id": self.settings.clientId,
            "redirect_uri": request.redirect_uri or self.settings.redirectUri,
            "scope": "openid profile email",
            "state": request.state,
            "nonce": request.nonce,
            "code_challenge": request.code_challenge,
            "code_challenge_method": "S256",
        }
        return auth_pb2.AuthorizeUrlResponse(url=f"{address}{'&' if '?' in address else '?'}{urlencode(query)}")

    async def Exchange(self, request, context):
        document = await self.login_endpoints()
        if not (request.code and request.nonce and request.code_verifier):
            raise Refused("a login needs a code, its verifier and its nonce")
        answer = await self.redeem(document["token_endpoint"], request)
        if not isinstance(answer, dict):
            raise Unavailable("the token endpoint's response is not valid")
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise Refused("the provider returned no id token")
        claims = await check(self.provider, token, [self.settings.clientId])
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), request.nonce.encode()):
            raise Refused("the id token's nonce does not match this login")
        if claims.get("azp", self.settings.clientId) != self.settings.clientId:
            raise Refused("the id token was issued to another client")
        return auth_pb2.ExchangeResponse(identity=self.identity(claims))

    async def login_endpoints(self) -> dict:
        if not self.settings.login:
            raise Unimplemented("browser login needs the settings clientId and redirectUri")
        _, document = await self.provider.document.get()
        if "authorization_endpoint" not in document or "token_endpoint" not in document:
            raise Unavailable("the provider's metadata has no authorization or token endpoint")
        return document

    async def redeem(self, address: str, request: auth_pb2.ExchangeRequest) -> object:
        """Exchanges the code at the token endpoint (RFC 6749 section 4.1.3 with RFC 7636)."""
        s = self.settings
        form = {
            "grant_type": "authorization_code",
            "code": request.code,
            "redirect_uri": request.redirect_uri or s.redirectUri,
            "code_verifier": request.code_verifier,
        }
        secret = httpx.BasicAuth(s.clientId, s.clientSecret) if s.clientSecret else None
        if not secret:
            form["client_id"] = s.clientId
        try:
            auth = secret or httpx.USE_CLIENT_DEFAULT
            status, raw = await self.provider.ask("POST", address, DOCUMENT_LIMIT, data=form, auth=auth)
            if status >= 500 or status in (408, 429):
                raise Unavailable(f"the provider's token endpoint returned {status}")
            body = json.loads(raw)
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            raise Unavailable(f"the request to the provider's token endpoint failed: {type(error).__name__}") from None
        if status != httpx.codes.OK:
            code = body.get("error") if isinstance(body, dict) else None
            raise Refused(f"the provider refused the code: {status} {clip(code)}")
        return body

    def identity(self, claims: dict) -> auth_pb2.Identity:
        """Returns the owner of verified claims. Refuses members of other organizations."""
        verified = claims.get("email_verified")
        email = text(claims, "email") if verified is True or verified == "true" else ""
        scopes = claims.get("scope")
        return auth_pb2.Identity(
            issuer=claims["iss"],
            subject=claims["sub"],
            email=email,
            display_name=text(claims, "name") or text(claims, "preferred_username") or email,
            organization_id=self.organization(claims),
            org_role=self.role(claims),
            scopes=scopes.split() if isinstance(scopes, str) else [],
            expires_at=Timestamp(seconds=int(claims["exp"])),
        )

    def organization(self, claims: dict) -> str:
        held, wanted = texts(claims, self.settings.organizationClaim), self.settings.organizationId
        if wanted and wanted not in held:
            raise Refused(f"the token belongs to another organization ({self.settings.organizationClaim})")
        return wanted or (held[0] if len(held) == 1 else "")

    def role(self, claims: dict) -> str:
        """Returns the highest role in the claims; empty if they have none that the server knows."""
        held = texts(claims, self.settings.roleClaim)
        return next((role for role in ("owner", "admin", "member") if role in held), "")


def text(claims: dict, name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def texts(claims: dict, name: str) -> list[str]:
    """Returns a claim that is a string or a list of strings, as a list."""
    value = claims.get(name)
    every = value if isinstance(value, list) else [value]
    return [item for item in every if isinstance(item, str)]
