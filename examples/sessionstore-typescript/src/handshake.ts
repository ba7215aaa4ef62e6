// The handshake of go-plugin, as the comments of ropewalk/plugin/v1/plugin.proto describe it.

import { Console } from "node:console";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ServerCredentials } from "@grpc/grpc-js";
import { generate } from "selfsigned";

const COOKIE = "ROPEWALK_PLUGIN";

/** Returns the reason why this process must not serve, or an empty string. */
export function refuse(env: NodeJS.ProcessEnv, kind: string, wire: number): string {
  const wanted = env[COOKIE] ?? "";
  if (wanted === "") {
    return (
      `this is a Ropewalk plugin of kind ${kind}; a server starts it if its configuration names it, ` +
      "and `ropewalk plugin test` checks it"
    );
  }
  if (wanted !== kind) {
    return `this is a plugin of kind ${kind}, but it was started as a plugin of kind ${wanted}`;
  }
  const versions = (env.PLUGIN_PROTOCOL_VERSIONS ?? String(wire)).split(",");
  if (!versions.includes(String(wire))) {
    return `this plugin speaks protocol version ${wire}; the server speaks ${versions.join(", ")}`;
  }
  return "";
}

/** Where the plugin listens: a unix socket in a directory that other users cannot open. */
export class Place {
  readonly path: string;
  readonly #own: boolean;

  constructor() {
    const given = process.env.PLUGIN_UNIX_SOCKET_DIR ?? "";
    this.#own = given === "";
    this.path = join(this.#own ? mkdtempSync(join(tmpdir(), "ropewalk")) : given, `plugin${process.pid}`);
  }

  get target(): string {
    return `unix:${this.path}`;
  }

  remove(): void {
    rmSync(this.#own ? dirname(this.path) : this.path, { force: true, recursive: this.#own });
  }
}

/** TLS for this process, and the sixth field of the handshake line. */
export interface Security {
  credentials: ServerCredentials;
  field: string;
}

/** Creates a certificate if the server has passed its own, and accepts only that client. */
export async function secure(client: string | undefined): Promise<Security> {
  if (client === undefined || client === "") {
    return { credentials: ServerCredentials.createInsecure(), field: "" };
  }
  const now = Date.now();
  const pair = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notBeforeDate: new Date(now - 60_000),
    notAfterDate: new Date(now + 30 * 365 * 86_400_000),
    extensions: [
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] },
      { name: "extKeyUsage", serverAuth: true },
    ],
  });
  const chain = [{ private_key: Buffer.from(pair.private), cert_chain: Buffer.from(pair.cert) }];
  return {
    credentials: ServerCredentials.createSsl(Buffer.from(client), chain, true),
    field: new X509Certificate(pair.cert).raw.toString("base64").replace(/=+$/, ""),
  };
}

/** Prints the handshake line. Anything printed later goes to the log. */
export function announce(wire: number, path: string, field: string): void {
  process.stdout.write(`1|${wire}|unix|${path}|grpc|${field}\n`);
  globalThis.console = new Console(process.stderr);
}
