"""Checks what the API promises beyond schemathesis's own checks.

A status is documented only if the operation lists it. `default` does not count. A 5xx is a defect unless the
operation lists it and its code is in PROMISED. A request that matches the document may be refused with
400 only for a reason that a schema cannot express.
"""

import json
import re

import schemathesis
from schemathesis.core.failures import Failure

# Codes of the 5xx responses that the API promises (docs/api.md 1.2). Either something that the request needs is
# unavailable, or the app to install or start does not work. internal_error is never promised.
PROMISED = {
    "install_failed", "uninstall_failed", "start_failed", "stop_failed", "update_failed",
    "model_not_configured", "unavailable", "provider_auth_error", "provider_overloaded", "provider_error",
}

# Codes of 400 responses that depend on the server's state and not on the form of the request.
ABOUT_STATE = {"invalid_input", "credentials_required", "permissions_required", "not_configured", "workspace_required"}

# Reasons for bad_request that a JSON Schema cannot express. The first item of a pair is part of the error message.
INEXPRESSIBLE = [
    ("you cannot delete yourself", "who the caller is"),
    ("the query parameter workspace differ", "two parameters that must agree"),
    ("is not from this list", "cursors that the server returned before"),
    ("there is no provider", "what is configured"),
    ("it changes how programs are found or loaded", "a configured list of names"),
    ("is neither declared by the bundle", "the bundle"),
    ("which is reserved", "a word that is not allowed as the end of a name"),
    ("must be before", "two parameters in an order"),
    ("must be the last part of the form", "two parts of a form in an order"),
    ("must be in the future", "the time of the request"),
    ("the header X-Workspace-Id is empty", "an optional header that is sent empty, which does not fit its pattern"),
    ("the file is not a usable bundle", "the content of a file"),
    ("is not the name of a variable", "a form that follows from another member"),
    ("is not an absolute path on the server's machine", "a form that follows from another member"),
    ("is not a destination", "a form that follows from another member"),
    ("is not a port on this machine", "a form that follows from another member"),
    ("does not exist on the server's machine", "the server's files"),
    ("runs on another machine", "what kind of app it is"),
    ("is for installed apps", "a member that other operations have"),
    ("is set by the transport", "words that are not allowed as a name"),
]


class UndocumentedStatus(Failure):
    """A status that the operation does not list."""

    def __init__(self, case, status: int) -> None:
        super().__init__(operation=case.operation.label, title="Undocumented status", message=f"{status} is not among the responses of the operation")


class BrokenPromise(Failure):
    """A server error that the API does not promise."""

    def __init__(self, case, status: int, code: str) -> None:
        super().__init__(operation=case.operation.label, title="Server error that is not promised", message=f"{status} {code}")


class RefusedValidData(Failure):
    """A 400 for a request that matches the document."""

    def __init__(self, case, code: str, reason: str) -> None:
        super().__init__(operation=case.operation.label, title="Refused a request that fits the document", message=f"{code}: {reason}")


def answer_of(response) -> tuple[str, str]:
    try:
        body = json.loads(response.content)
        return str(body.get("error", "")), str(body.get("message", ""))
    except (ValueError, AttributeError):
        return "", ""


def probes_method(case) -> bool:
    return case.method.upper() != case.operation.method.upper()


@schemathesis.check
def status_is_documented(ctx, response, case) -> None:
    if probes_method(case):
        return
    if str(response.status_code) not in case.operation.definition.raw["responses"]:
        raise UndocumentedStatus(case, response.status_code)


@schemathesis.check
def server_error_is_promised(ctx, response, case) -> None:
    code, _ = answer_of(response)
    if response.status_code >= 500 and code not in PROMISED:
        raise BrokenPromise(case, response.status_code, code)


@schemathesis.check
def valid_data_is_accepted(ctx, response, case) -> None:
    if response.status_code not in (400, 422) or case.meta is None or not case.meta.generation.mode.is_positive or probes_method(case):
        return
    code, reason = answer_of(response)
    if code in ABOUT_STATE or any(re.search(pattern, reason) for pattern, _ in INEXPRESSIBLE):
        return
    raise RefusedValidData(case, code, reason)


# Addresses of apps are replaced by an address on this machine, so that no request leaves the machine.
@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict):
        for name in ("url", "serverUrl"):
            if isinstance(body.get(name), str) and re.match(r"https?://[^/?#@]", body[name]):
                body[name] = "http://127.0.0.1:9/mcp"
    return body
