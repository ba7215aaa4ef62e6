// The errors that a store may return.

import { status } from "@grpc/grpc-js";

/** An error status with its gRPC code. The message goes to the server's log. */
export class PluginError extends Error {
  constructor(
    readonly code: status,
    message: string,
  ) {
    super(message);
  }
}

export const notFound = (message: string): PluginError => new PluginError(status.NOT_FOUND, message);
export const invalid = (message: string): PluginError => new PluginError(status.INVALID_ARGUMENT, message);
export const unavailable = (message: string): PluginError => new PluginError(status.UNAVAILABLE, message);
export const unconfigured = (): PluginError => new PluginError(status.FAILED_PRECONDITION, "call Configure first");
