"""The errors that a plugin may return, with their gRPC codes."""

import grpc


class PluginError(Exception):
    """An error status. Its text goes to the server's log, so it must not contain secrets."""

    code = grpc.StatusCode.INTERNAL


class NotFound(PluginError):
    """It does not exist, according to the backend."""

    code = grpc.StatusCode.NOT_FOUND


class Refused(PluginError):
    """The credential was checked and is not valid. The server returns 401."""

    code = grpc.StatusCode.UNAUTHENTICATED


class Unavailable(PluginError):
    """The backend could not be reached. The server returns 503."""

    code = grpc.StatusCode.UNAVAILABLE


class Invalid(PluginError):
    """The request itself is wrong."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class Unimplemented(PluginError):
    """The plugin does not have this capability."""

    code = grpc.StatusCode.UNIMPLEMENTED


def clip(text: object) -> str:
    """Shortens untrusted text so that it fits a log line."""
    written = repr(text)
    return written if len(written) <= 100 else written[:99] + "…"
