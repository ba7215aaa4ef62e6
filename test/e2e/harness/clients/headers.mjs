// The second generation of the official TypeScript client calls a tool whose arguments must be repeated in headers. The
// script prints the results as JSON.
//
//   node headers.mjs <url> <workspace>   calls the app "far" through /mcp
//
// NODE_MODULES is the directory that contains @modelcontextprotocol/client.
import { pathToFileURL } from "node:url";

const { Client, StreamableHTTPClientTransport } = await import(
  pathToFileURL(`${process.env.NODE_MODULES}/@modelcontextprotocol/client/dist/index.mjs`)
);
const [url, workspace] = process.argv.slice(2);

const c = new Client({ name: "e2e", version: "2.0.0" }, { capabilities: {}, versionNegotiation: { mode: { pin: "2026-07-28" } } });
await c.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers: { "X-Workspace-Id": workspace } } }));
await c.listTools(); // the list tells the client which arguments to repeat in headers

const said = [];
for (const args of [{ region: "us-west1", in: { n: 42, b: true } }, { region: "Hello, 世界" }, { region: " padded " }, { region: "" }, {}]) {
  said.push((await c.callTool({ name: "far__sell", arguments: args })).content[0].text);
}
await c.close();
console.log(JSON.stringify({ said }));
process.exit(0);
