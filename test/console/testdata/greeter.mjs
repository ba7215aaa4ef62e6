// An MCP server without dependencies. Its tool answers with GREETING_TOKEN. If GREETING_ABOUT is set, the tool's
// description contains its value.
import { createInterface } from "node:readline";

const about = process.env.GREETING_ABOUT;
const tool = {
  name: "greet",
  description: about ? `Greets a guest. ${about}` : "Greets a guest",
  inputSchema: { type: "object", properties: {} },
};
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "greeter", version: "1.0.0" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": () => ({ content: [{ type: "text", text: process.env.GREETING_TOKEN ?? "hello" }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const outcome = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }) + "\n");
});
