"""The settings of this adapter."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from plugin.settings import Problem


@dataclass(frozen=True)
class Settings:
    """The settings that an operator writes below `auth:`, in addition to adapter, path and sha256."""

    issuer: str = ""  # exactly as in the provider's documents and tokens
    audiences: list[str] = field(default_factory=list)  # accepted in addition to the server's own
    organizationId: str = ""  # only its members may log in
    organizationClaim: str = "org_id"  # a string or a list of strings
    roleClaim: str = ""  # owner, admin or member, or a list of them; without it all are members
    clientId: str = ""  # enables browser login, together with redirectUri
    clientSecret: str = field(default="", repr=False)  # left out by a public client
    redirectUri: str = ""

    @property
    def login(self) -> bool:
        return bool(self.clientId and self.redirectUri)

    def problems(self, data_dir: str) -> list[Problem]:
        """Checks what types cannot express."""
        problems = []
        if not self.issuer:
            problems.append(Problem("issuer", "must be set to the provider's issuer URL, such as https://id.example.com"))
        for path, address in (("issuer", self.issuer), ("redirectUri", self.redirectUri)):
            complaint = check_url(address)
            if address and complaint:
                problems.append(Problem(path, complaint))
        if self.redirectUri and not self.clientId:
            problems.append(Problem("clientId", "must be set when redirectUri is: a browser login needs both"))
        elif self.clientSecret and not self.clientId:
            problems.append(Problem("clientId", "must be set when clientSecret is"))
        if self.organizationId and not self.organizationClaim:
            problems.append(Problem("organizationClaim", "must name the claim with the organization"))
        return problems


def check_url(address: str) -> str:
    """Returns what is wrong with an address. It must be absolute, and https unless it is on loopback."""
    try:
        url = urlsplit(address)
        host = url.hostname or ""
        url.port  # noqa: B018, reading it checks it
    except ValueError:
        host = ""
    if not host:
        return "must be an absolute URL such as https://id.example.com"
    if url.username is not None or url.password is not None:
        return "must not contain a user or a password"
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
