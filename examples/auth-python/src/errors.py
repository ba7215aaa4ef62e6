"""What an adapter may answer beside success, and the gRPC code each is."""

import grpc


class PluginError(Exception):
    """An answer that is not OK. Its text goes to the server's log and holds no secret."""

    code = grpc.StatusCode.INTERNAL


class Refused(PluginError):
    """The credential was checked and is bad: the server answers 401."""

    code = grpc.StatusCode.UNAUTHENTICATED


class Away(PluginError):
    """Nobody can tell at the moment: the server answers 503."""

    code = grpc.StatusCode.UNAVAILABLE


class Invalid(PluginError):
    """The request itself is wrong."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class Unimplemented(PluginError):
    """The adapter has not this power."""

    code = grpc.StatusCode.UNIMPLEMENTED


def clip(text: object) -> str:
    """What a stranger wrote, cut to a length that fits a log line."""
    written = repr(text)
    return written if len(written) <= 100 else written[:99] + "…"
