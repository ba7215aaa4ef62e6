// Completes the handshake with the server that started the plugin, then serves until it is shut down.

import { announce, Place, refuse, secure } from "./handshake.js";
import { error } from "./log.js";
import { Plugin } from "./plugin.js";
import { build, listen, stop } from "./serve.js";

const KIND = "sessionstore";
const WIRE = 1;

async function main(): Promise<void> {
  process.umask(0o077); // nobody else may read the sessions
  const { promise: ended, resolve: end } = untilEnd();
  const place = new Place();
  const security = await secure(process.env.PLUGIN_CLIENT_CERT);
  const plugin = new Plugin();
  const server = build(plugin, end);
  await listen(server, place.target, security.credentials);
  announce(WIRE, place.path, security.field);
  await ended;
  await stop(server);
  await plugin.close();
  place.remove();
}

/** Returns a promise that SIGTERM and Shutdown resolve. Ctrl-C is meant for the server. */
function untilEnd(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => (resolve = done));
  process.on("SIGTERM", resolve);
  process.on("SIGINT", () => {});
  return { promise, resolve };
}

const refusal = refuse(process.env, KIND, WIRE);
if (refusal !== "") {
  console.error(refusal);
  process.exit(1);
}
main().then(
  () => process.exit(0),
  (problem: unknown) => {
    error("The plugin cannot serve.", { error: String(problem) });
    process.exit(1);
  },
);
