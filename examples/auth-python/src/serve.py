"""The gRPC server: ropewalk.plugin.v1, health, the end on request, and a guard in front of it all."""

import functools
import logging
from collections.abc import Callable

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

import settings
from adapter import Adapter
from errors import Invalid, PluginError
from handshake import Security
from ropewalk.auth.v1 import auth_pb2_grpc
from ropewalk.plugin.v1 import plugin_pb2, plugin_pb2_grpc

log = logging.getLogger(__name__)
VERSION = "1.0.0"
MAX_MESSAGE = 16 << 20  # bytes, as on the server's side


class PluginService(plugin_pb2_grpc.PluginServiceServicer):
    """Describes the plugin and takes its settings."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter, self.configured = adapter, False

    async def Info(self, request, context):
        return plugin_pb2.InfoResponse(
            name="python", version=VERSION, kind="auth", protocol_versions=[1], capabilities=["configure", "login", "validate"]
        )

    async def Configure(self, request, context):
        if self.configured:
            raise Invalid("the plugin is configured already; start another process for other settings")
        taken, problems = settings.parse(request.settings_json)
        if not problems:
            self.adapter.configure(taken)
            self.configured = True
            log.info("The adapter is ready.", extra={"fields": {"issuer": taken.issuer, "login": taken.login}})
        return plugin_pb2.ConfigureResponse(problems=on_wire(problems))

    async def Validate(self, request, context):
        _, problems = settings.parse(request.settings_json)
        return plugin_pb2.ValidateResponse(problems=on_wire(problems))


def on_wire(problems: list[settings.Problem]) -> list[plugin_pb2.Problem]:
    return [plugin_pb2.Problem(path=p.path, message=p.message, nearest=p.nearest) for p in problems]


class Guard(grpc.aio.ServerInterceptor):
    """Stands in front of every method: an exception becomes a status, and before Configure was
    accepted there is nothing to ask an adapter."""

    def __init__(self, plugin: PluginService) -> None:
        self.plugin = plugin

    async def intercept_service(self, continuation, details):
        handler = await continuation(details)
        if handler is None or not details.method.startswith("/ropewalk."):
            return handler
        return handler._replace(unary_unary=self.guarded(details.method, handler.unary_unary))

    def guarded(self, method: str, call):
        @functools.wraps(call)
        async def guarded(request, context):
            if method.startswith("/ropewalk.auth.") and not self.plugin.configured:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "call Configure first")
            try:
                return await call(request, context)
            except PluginError as error:
                await context.abort(error.code, str(error))
            except Exception:
                log.exception("A call of this plugin failed.", extra={"fields": {"method": method}})
                await context.abort(grpc.StatusCode.INTERNAL, "the plugin failed; its log has the stack")

        return guarded


def controller(end: Callable[[], None]) -> grpc.GenericRpcHandler:
    """plugin.GRPCController of go-plugin, whose messages are empty: no generated code is needed."""

    async def shutdown(request: bytes, context) -> bytes:
        end()
        return b""

    return grpc.method_handlers_generic_handler(
        "plugin.GRPCController", {"Shutdown": grpc.unary_unary_rpc_method_handler(shutdown)}
    )


async def build(end: Callable[[], None]) -> tuple[grpc.aio.Server, Adapter]:
    """Makes the server, which does not listen yet, and the adapter behind it."""
    adapter = Adapter()
    plugin = PluginService(adapter)
    server = grpc.aio.server(
        interceptors=[Guard(plugin)],
        options=[("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)],
    )
    plugin_pb2_grpc.add_PluginServiceServicer_to_server(plugin, server)
    auth_pb2_grpc.add_AuthServiceServicer_to_server(adapter, server)
    auth_pb2_grpc.add_LoginServiceServicer_to_server(adapter, server)
    healthy = health.aio.HealthServicer()
    await healthy.set("plugin", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    server.add_generic_rpc_handlers((controller(end),))
    return server, adapter


def listen(server: grpc.aio.Server, target: str, security: Security | None) -> None:
    """Opens the socket: with TLS, and for one client only, when the server asked for it."""
    if not security:
        server.add_insecure_port(target)
        return
    credentials = grpc.ssl_server_credentials(
        [(security.key, security.certificate)], root_certificates=security.client, require_client_auth=True
    )
    server.add_secure_port(target, credentials)
