"""The settings: read strictly, with every problem reported at once and where it is."""

import difflib
import json
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. The message never repeats a value: it could be a secret."""

    path: str
    message: str
    nearest: str = ""


@dataclass(frozen=True)
class Settings:
    """What an operator writes below `auth:`, beside adapter, path and sha256."""

    issuer: str = ""  # exactly as the provider's documents and tokens write it
    audiences: list[str] = field(default_factory=list)  # accepted beside the server's own
    organizationId: str = ""  # only its members are let in
    organizationClaim: str = "org_id"  # a string or a list of strings
    roleClaim: str = ""  # owner, admin or member, or a list of them; without it all are members
    clientId: str = ""  # with redirectUri it makes browser login possible
    clientSecret: str = field(default="", repr=False)  # left out by a public client
    redirectUri: str = ""

    @property
    def login(self) -> bool:
        return bool(self.clientId and self.redirectUri)


TEXTS = ("issuer", "organizationId", "organizationClaim", "roleClaim", "clientId", "clientSecret", "redirectUri")
LISTS = ("audiences",)


def parse(text: str) -> tuple[Settings, list[Problem]]:
    """Reads settings. They are good only when there are no problems."""
    problems: list[Problem] = []
    pairs = read(text, problems)
    values: dict[str, object] = {}
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            problems.append(Problem(name, "is given twice"))
        elif name not in TEXTS + LISTS:
            near = difflib.get_close_matches(name, TEXTS + LISTS, n=1, cutoff=0.6)
            problems.append(Problem(name, "is not a setting", near[0] if near else ""))
        elif name in LISTS and not is_list(name, value, problems):
            pass
        elif name in TEXTS and not isinstance(value, str):
            problems.append(Problem(name, f"must be a string, not {kind_of(value)}"))
        else:
            values[name] = value
        seen.add(name)
    settings = Settings(**values)  # type: ignore[arg-type]
    wrong = {p.path for p in problems}
    problems += [p for p in rules(settings) if p.path not in wrong]
    return settings, problems


class Pairs(list):
    """A JSON object as it was written: names may come twice."""


def read(text: str, problems: list[Problem]) -> Pairs:
    try:
        value = json.loads(text or "{}", object_pairs_hook=Pairs)
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        problems.append(Problem("", f"must be one JSON object: it cannot be read{where}"))
        return Pairs()
    if not isinstance(value, Pairs):
        problems.append(Problem("", f"must be an object, not {kind_of(value)}"))
        return Pairs()
    return value


def is_list(name: str, value: object, problems: list[Problem]) -> bool:
    if isinstance(value, Pairs) or not isinstance(value, list):
        problems.append(Problem(name, f"must be a list, not {kind_of(value)}"))
        return False
    wrong = [
        Problem(f"{name}[{i}]", f"must be a string, not {kind_of(item)}")
        for i, item in enumerate(value)
        if not isinstance(item, str)
    ]
    problems += wrong
    return not wrong


def kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Pairs):
        return "an object"
    return {str: "a string", list: "a list"}.get(type(value), "a number")


def rules(s: Settings) -> list[Problem]:
    """What types do not express."""
    problems = []
    if not s.issuer:
        problems.append(Problem("issuer", "must be set to the provider's issuer URL, such as https://id.example.com"))
    for path, address in (("issuer", s.issuer), ("redirectUri", s.redirectUri)):
        complaint = check_url(address)
        if address and complaint:
            problems.append(Problem(path, complaint))
    if s.redirectUri and not s.clientId:
        problems.append(Problem("clientId", "must be set when redirectUri is: a browser login needs both"))
    elif s.clientSecret and not s.clientId:
        problems.append(Problem("clientId", "must be set when clientSecret is"))
    if s.organizationId and not s.organizationClaim:
        problems.append(Problem("organizationClaim", "must name the claim that holds the organization"))
    return problems


def check_url(address: str) -> str:
    """Says what is wrong with an address: it must be absolute and https, http on loopback only."""
    try:
        url = urlsplit(address)
        host = url.hostname or ""
        url.port  # noqa: B018, reading it checks it
    except ValueError:
        host = ""
    if not host:
        return "must be an absolute URL such as https://id.example.com"
    if url.username is not None or url.password is not None:
        return "must not carry a user or a password"
    if "?" in address or "#" in address:
        return "must not have a query or a fragment"
    if url.scheme == "https" or (url.scheme == "http" and is_loopback(host)):
        return ""
    return "must be an https URL (http is for loopback addresses only)"


def is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
