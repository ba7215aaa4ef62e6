"""Serves a plugin: the handshake, ropewalk.plugin.v1, health, shutdown, and a guard in front of every method."""

import asyncio
import dataclasses
import functools
import logging
import os
import signal
import sys
from collections.abc import Callable

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from plugin import handshake, hclog, settings
from plugin.errors import Invalid, PluginError
from ropewalk.plugin.v1 import plugin_pb2, plugin_pb2_grpc

log = logging.getLogger(__name__)
MAX_MESSAGE = 16 << 20  # bytes, as on the server's side


class Plugin:
    """Describes a plugin. Its methods run on one event loop: never block it."""

    kind = ""
    name = ""
    version = ""  # any text; shown to operators
    capabilities: tuple[str, ...] = ()  # other than "configure" and "validate", which are added; see plugin.proto
    settings_type: type  # a dataclass, as plugin.settings.parse takes it

    async def configure(self, taken, data_dir: str) -> None:
        """Applies settings that have no problems. Raises Unavailable if a required backend cannot be reached."""

    def add_to(self, server: grpc.aio.Server) -> None:
        """Adds the kind's services."""
        raise NotImplementedError

    async def close(self) -> None:
        """Releases the backend."""


def run(plugin: Plugin) -> None:
    """Runs a plugin. It returns after the server has requested a shutdown, or on SIGTERM."""
    refusal = handshake.refuse(os.environ, plugin.kind)
    if refusal:
        print(refusal, file=sys.stderr)
        sys.exit(1)
    hclog.setup()
    asyncio.run(serve(plugin))


async def serve(plugin: Plugin) -> None:
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C is meant for the server

    place = handshake.Place.choose()
    security = handshake.Security.make(os.environ.get("PLUGIN_CLIENT_CERT", ""))
    server = await build(plugin, end.set)
    listen(server, place.target, security)
    await server.start()
    handshake.announce(place, security)
    try:
        await end.wait()
    finally:
        await server.stop(grace=1)
        await plugin.close()
        place.remove()


class PluginService(plugin_pb2_grpc.PluginServiceServicer):
    """Describes the plugin and takes its settings."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin, self.configured = plugin, False

    async def Info(self, request, context):
        p = self.plugin
        configure = ["configure"] if dataclasses.fields(p.settings_type) else []
        capabilities = [*configure, "validate", *p.capabilities]
        return plugin_pb2.InfoResponse(
            name=p.name, version=p.version, kind=p.kind, protocol_versions=[handshake.PROTOCOL], capabilities=capabilities
        )

    async def Configure(self, request, context):
        if self.configured:
            raise Invalid("the plugin is already configured; start another process for other settings")
        taken, problems = settings.parse(request.settings_json, self.plugin.settings_type, request.data_dir)
        if not problems:
            await self.plugin.configure(taken, request.data_dir)
            self.configured = True
        return plugin_pb2.ConfigureResponse(problems=on_wire(problems))

    async def Validate(self, request, context):
        _, problems = settings.parse(request.settings_json, self.plugin.settings_type, request.data_dir)
        return plugin_pb2.ValidateResponse(problems=on_wire(problems))


def on_wire(problems: list[settings.Problem]) -> list[plugin_pb2.Problem]:
    return [plugin_pb2.Problem(path=p.path, message=p.message, nearest=p.nearest) for p in problems]


class Guard(grpc.aio.ServerInterceptor):
    """Wraps every method: it turns exceptions into statuses, and refuses calls to the kind's services until
    Configure has succeeded."""

    def __init__(self, service: PluginService) -> None:
        self.service = service

    async def intercept_service(self, continuation, details):
        handler = await continuation(details)
        if handler is None or not details.method.startswith("/ropewalk."):
            return handler
        if handler.response_streaming:
            return handler._replace(unary_stream=self.stream(details.method, handler.unary_stream))
        return handler._replace(unary_unary=self.unary(details.method, handler.unary_unary))

    def unary(self, method: str, call):
        @functools.wraps(call)
        async def guarded(request, context):
            try:
                self.check(method)
                return await call(request, context)
            except Exception as error:  # noqa: BLE001, every error becomes a status
                await refuse(method, context, error)

        return guarded

    def stream(self, method: str, call):
        @functools.wraps(call)
        async def guarded(request, context):
            try:
                self.check(method)
                async for answer in call(request, context):
                    yield answer
            except Exception as error:  # noqa: BLE001, every error becomes a status
                await refuse(method, context, error)

        return guarded

    def check(self, method: str) -> None:
        if not self.service.configured and not method.startswith("/ropewalk.plugin."):
            raise NotConfigured("call Configure first")


class NotConfigured(PluginError):
    code = grpc.StatusCode.FAILED_PRECONDITION


async def refuse(method: str, context, error: Exception) -> None:
    if isinstance(error, PluginError):
        await context.abort(error.code, str(error))
    if isinstance(error, grpc.aio.AbortError):
        raise error
    log.error("A call to this plugin failed.", exc_info=error, extra={"fields": {"method": method}})
    await context.abort(grpc.StatusCode.INTERNAL, "the plugin failed; its log has the stack")


def controller(end: Callable[[], None]) -> grpc.GenericRpcHandler:
    """plugin.GRPCController of go-plugin. Its messages are empty, so it needs no generated code."""

    async def shutdown(request: bytes, context) -> bytes:
        end()
        return b""

    return grpc.method_handlers_generic_handler(
        "plugin.GRPCController", {"Shutdown": grpc.unary_unary_rpc_method_handler(shutdown)}
    )


async def build(plugin: Plugin, end: Callable[[], None]) -> grpc.aio.Server:
    """Creates the server, which does not listen yet."""
    service = PluginService(plugin)
    server = grpc.aio.server(
        interceptors=[Guard(service)],
        options=[("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)],
    )
    plugin_pb2_grpc.add_PluginServiceServicer_to_server(service, server)
    plugin.add_to(server)
    healthy = health.aio.HealthServicer()
    await healthy.set("plugin", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    server.add_generic_rpc_handlers((controller(end),))
    return server


def listen(server: grpc.aio.Server, target: str, security: handshake.Security | None) -> None:
    """Opens the socket. If the server asked for TLS, only that client may connect."""
    if not security:
        server.add_insecure_port(target)
        return
    credentials = grpc.ssl_server_credentials(
        [(security.key, security.certificate)], root_certificates=security.client, require_client_auth=True
    )
    server.add_secure_port(target, credentials)
