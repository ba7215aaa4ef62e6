// The gRPC server: its services, health, shutdown, and the table that maps errors to codes.

import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { HealthImplementation } from "grpc-health-check";
import type { ProtoGrpcType as PluginProto } from "../gen/plugin.js";
import type { ProtoGrpcType as StoreProto } from "../gen/sessionstore.js";
import type { PluginServiceHandlers } from "../gen/ropewalk/plugin/v1/PluginService.js";
import type { SessionStoreServiceHandlers } from "../gen/ropewalk/sessionstore/v1/SessionStoreService.js";
import { PluginError } from "./errors.js";
import { error } from "./log.js";
import type { Plugin } from "./plugin.js";
import { parse } from "./settings.js";

const MAX_MESSAGE = 16 << 20; // bytes, as on the server's side
const GRACE = 1_000; // milliseconds for calls that are in progress at shutdown

/** Creates the server, which does not listen yet. */
export function build(plugin: Plugin, end: () => void): grpc.Server {
  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_MESSAGE,
    "grpc.max_send_message_length": MAX_MESSAGE,
  });
  const { ropewalk } = protocol();
  server.addService(ropewalk.plugin.v1.PluginService.service, {
    Info: unary(() => plugin.info()),
    Configure: unary((request) => ({ problems: plugin.configure(request) })),
    Validate: unary((request) => ({ problems: parse(request.settingsJson).problems })),
  } satisfies PluginServiceHandlers);
  server.addService(ropewalk.sessionstore.v1.SessionStoreService.service, {
    Put: unary(async ({ record, ttl }) => nothing(await plugin.store.put(record, ttl))),
    Get: unary(({ id }) => ({ record: plugin.store.get(id) })),
    Touch: unary(async ({ touches }) => nothing(await plugin.store.touch(touches))),
    Delete: unary(async ({ id }) => nothing(await plugin.store.delete(id))),
    // Replace is optional: a store without the capability "replace" returns UNIMPLEMENTED.
  } satisfies Omit<SessionStoreServiceHandlers, "Replace">);
  new HealthImplementation({ plugin: "SERVING" }).addToServer(server);
  server.addService(controller, { Shutdown: unary<Buffer, Buffer>(() => (end(), Buffer.alloc(0))) });
  return server;
}

/** Loads the protocol, which the build has copied. */
function protocol(): { ropewalk: PluginProto["ropewalk"] & StoreProto["ropewalk"] } {
  const files = ["ropewalk/plugin/v1/plugin.proto", "ropewalk/sessionstore/v1/sessionstore.proto"];
  const includeDirs = [join(import.meta.dirname, "../proto")];
  const definition = loadSync(files, { includeDirs, longs: Number, defaults: true });
  return grpc.loadPackageDefinition(definition) as unknown as ReturnType<typeof protocol>;
}

/** plugin.GRPCController of go-plugin. Its messages are empty. */
const controller: grpc.ServiceDefinition = {
  Shutdown: {
    path: "/plugin.GRPCController/Shutdown",
    requestStream: false,
    responseStream: false,
    requestSerialize: (message: Buffer) => message,
    requestDeserialize: (message: Buffer) => message,
    responseSerialize: (message: Buffer) => message,
    responseDeserialize: (message: Buffer) => message,
  },
};

const nothing = (_: void): Record<string, never> => ({});

/** Turns a function into a handler: its result becomes the response, and an exception becomes a status. */
function unary<Request, Response>(
  call: (request: Request) => Response | Promise<Response>,
): grpc.handleUnaryCall<Request, Response> {
  return async (incoming, answer) => {
    try {
      answer(null, await call(incoming.request));
    } catch (problem) {
      if (problem instanceof PluginError) {
        answer({ code: problem.code, details: problem.message });
        return;
      }
      error("A call to this plugin failed.", { method: incoming.getPath(), error: String(problem) });
      answer({ code: grpc.status.INTERNAL, details: "the plugin failed; its log has the reason" });
    }
  };
}

/** Opens the socket. */
export function listen(server: grpc.Server, target: string, credentials: grpc.ServerCredentials): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(target, credentials, (problem) => (problem === null ? resolve() : reject(problem)));
  });
}

/** Shuts the server down. Calls in progress get GRACE to finish. */
export function stop(server: grpc.Server): Promise<void> {
  return new Promise((resolve) => {
    const patience = setTimeout(() => (server.forceShutdown(), resolve()), GRACE);
    server.tryShutdown(() => (clearTimeout(patience), resolve()));
  });
}
