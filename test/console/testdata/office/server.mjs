// An MCP server whose tools and view are defined in app.json in the same directory. If NOTE is set, its text is added
// to the description of the first tool.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const app = JSON.parse(readFileSync(new URL("app.json", import.meta.url), "utf8"));
const tools = app.tools.map(({ answer, ...tool }, i) => ({ ...tool, description: [tool.description, i === 0 && process.env.NOTE].filter(Boolean).join(" ") }));
const html = `<!doctype html><body style="font: 14px system-ui; margin: 24px"><h1>${app.title}</h1><p>${app.description}</p></body>`;
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name: app.name, version: app.version } }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name }) => ({ content: [{ type: "text", text: app.tools.find((tool) => tool.name === name).answer }] }),
  "resources/list": () => ({ resources: [{ uri: `ui://${app.name}/main`, name: app.title, mimeType: "text/html;profile=mcp-app" }] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/html;profile=mcp-app", text: html }] }),
};
process.stderr.write(`${app.title} ${app.version} is ready\n`);
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const outcome = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }) + "\n");
});
