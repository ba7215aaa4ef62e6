"""What a plugin may answer besides success, and the gRPC code of each."""

import grpc


class PluginError(Exception):
    """An answer that is not OK. Its text goes to the server's log and holds no secret."""

    code = grpc.StatusCode.INTERNAL


class NotFound(PluginError):
    """It does not exist, and the backend was really asked."""

    code = grpc.StatusCode.NOT_FOUND


class Refused(PluginError):
    """The credential was checked and is bad: the server answers 401."""

    code = grpc.StatusCode.UNAUTHENTICATED


class Unavailable(PluginError):
    """The backend could not be asked: the server answers 503."""

    code = grpc.StatusCode.UNAVAILABLE


class Invalid(PluginError):
    """The request itself is wrong."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class Unimplemented(PluginError):
    """The plugin does not have this capability."""

    code = grpc.StatusCode.UNIMPLEMENTED


def clip(text: object) -> str:
    """What a stranger wrote, cut to a length that fits a log line."""
    written = repr(text)
    return written if len(written) <= 100 else written[:99] + "…"
