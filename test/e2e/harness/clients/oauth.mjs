// The official TypeScript client logs in through the identity provider that /mcp names, with a browser that agrees to
// everything. The script prints what the client saw as JSON.
//
//   node oauth.mjs <url>
//
// NODE_MODULES is the directory that contains @modelcontextprotocol/sdk.
import { pathToFileURL } from "node:url";

const sdk = (file) => import(pathToFileURL(`${process.env.NODE_MODULES}/@modelcontextprotocol/sdk/dist/esm/${file}.js`));
const { Client } = await sdk("client/index");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");
const { UnauthorizedError } = await sdk("client/auth");

const [url] = process.argv.slice(2);
const callback = "http://127.0.0.1:1/callback"; // no server listens there, because browse stops at this address
const seen = { asked: [] };
let code;

// browse follows redirects with cookies like a browser, up to the callback.
async function browse(to) {
  const jar = new Map();
  for (let at = to; ; ) {
    const resp = await fetch(at, { redirect: "manual", headers: { cookie: [...jar].map(([k, v]) => `${k}=${v}`).join("; ") } });
    for (const cookie of resp.headers.getSetCookie()) {
      const [pair] = cookie.split(";");
      jar.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    const next = resp.headers.get("location");
    if (!next) throw new Error(`the provider stopped at ${resp.status} ${await resp.text()}`);
    at = new URL(next, at);
    if (!at.href.startsWith(callback)) continue;
    if (!at.searchParams.has("code")) throw new Error(`the provider refused the login: ${at}`);
    return at.searchParams.get("code");
  }
}

const memory = {};
const provider = {
  redirectUrl: callback,
  clientMetadata: { client_name: "e2e", scope: "openid tools", redirect_uris: [callback], token_endpoint_auth_method: "none", grant_types: ["authorization_code"], response_types: ["code"], application_type: "native" },
  clientInformation: () => memory.client,
  saveClientInformation: (c) => { memory.client = c; seen.registered = Boolean(c.client_id); },
  tokens: () => memory.tokens,
  saveTokens: (t) => { memory.tokens = t; seen.token = t.access_token; },
  saveCodeVerifier: (v) => { memory.verifier = v; },
  codeVerifier: () => memory.verifier,
  redirectToAuthorization: async (to) => {
    seen.pkce = to.searchParams.get("code_challenge_method");
    seen.resource = to.searchParams.get("resource");
    code = await browse(to);
  },
};

const recorded = async (to, init) => {
  const resp = await fetch(to, init);
  const path = new URL(to).href.startsWith(url) ? new URL(to).pathname : "provider " + new URL(to).pathname;
  seen.asked.push(`${path} ${resp.status}`);
  return resp;
};
const transport = (workspace = "ws_unknown") => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: provider, fetch: recorded, requestInit: { headers: { "X-Workspace-Id": workspace } } });

const first = transport();
try {
  await new Client({ name: "e2e", version: "1.0.0" }).connect(first);
  throw new Error("connected without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
await first.finishAuth(code);
const mine = await (await fetch(`${url}/v1/workspace`, { headers: { authorization: `Bearer ${memory.tokens.access_token}` } })).json();
const client = new Client({ name: "e2e", version: "1.0.0" });
await client.connect(transport(mine.workspace.id));
seen.tools = (await client.listTools()).tools.map((t) => t.name);
seen.status = (await client.callTool({ name: "system__status", arguments: {} })).isError ?? false;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
