// Runs the official TypeScript client with nothing but a URL. The client finds the identity provider, registers, logs
// in with a browser that agrees to everything, and lists and calls tools. The script prints what the client saw as
// JSON.
//
//   node url-only.mjs <url of the endpoint>
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const resolved = createRequire(process.cwd() + "/").resolve("@modelcontextprotocol/client");
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await import(pathToFileURL(resolved));

const endpoint = new URL(process.argv[2]);
const callback = "http://127.0.0.1:1/callback"; // no server listens there, because browse stops at this address
const seen = {};
let code;

// browse follows redirects with cookies like a browser, fills in the account, and stops at the callback.
async function browse(to) {
  const jar = new Map();
  for (let at = to; ; ) {
    const resp = await fetch(at, { redirect: "manual", headers: { cookie: [...jar].map(([k, v]) => `${k}=${v}`).join("; ") } });
    for (const cookie of resp.headers.getSetCookie()) {
      const [pair] = cookie.split(";");
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    const next = resp.headers.get("location");
    if (!next && at.pathname.startsWith("/interaction/")) {
      at = new URL(at.pathname + "?account=ada", at);
      continue;
    }
    if (!next) throw new Error(`the provider stopped at ${resp.status} ${await resp.text()}`);
    at = new URL(next, at);
    if (!at.href.startsWith(callback)) continue;
    if (!at.searchParams.has("code")) throw new Error(`the provider refused the login: ${at}`);
    return at.searchParams;
  }
}

const memory = {};
const provider = {
  redirectUrl: callback,
  clientMetadata: { client_name: "url-only", redirect_uris: [callback], token_endpoint_auth_method: "none", grant_types: ["authorization_code"], response_types: ["code"], application_type: "native" },
  clientInformation: () => memory.client,
  saveClientInformation: (client) => { memory.client = client; },
  tokens: () => memory.tokens,
  saveTokens: (tokens) => { memory.tokens = tokens; },
  saveCodeVerifier: (verifier) => { memory.verifier = verifier; },
  codeVerifier: () => memory.verifier,
  saveDiscoveryState: (state) => { memory.discovery = state; },
  discoveryState: () => memory.discovery,
  redirectToAuthorization: async (to) => {
    seen.scope = to.searchParams.get("scope");
    seen.resource = to.searchParams.get("resource");
    code = await browse(to);
  },
};

const transport = () => new StreamableHTTPClientTransport(endpoint, { authProvider: provider });
const first = transport();
try {
  await new Client({ name: "url-only", version: "1.0.0" }).connect(first);
  throw new Error("connected without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
await first.finishAuth(code);
const client = new Client({ name: "url-only", version: "1.0.0" });
await client.connect(transport());
seen.tools = (await client.listTools()).tools.map((t) => t.name);
seen.echoed = (await client.callTool({ name: "filesystem__echo", arguments: { message: "text" } })).content[0].text;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
