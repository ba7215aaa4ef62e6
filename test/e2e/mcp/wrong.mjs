// A bundle with twenty invalid tools between two valid ones.
import { createInterface } from "node:readline";

const object = { type: "object" };
const wrong = [
  {}, { inputSchema: null }, { inputSchema: [] }, { inputSchema: true }, { inputSchema: {} }, { inputSchema: "{}" },
  { inputSchema: { type: "string" } }, { inputSchema: { type: ["object", "null"] } }, { inputSchema: { type: "object", properties: [] } },
  { inputSchema: { type: "object", properties: { x: "string" } } }, { inputSchema: { type: "object", required: true } },
  { inputSchema: { type: "object", properties: { x: true } } }, { inputSchema: object, description: null }, { inputSchema: object, title: 7 },
  { inputSchema: object, annotations: [] }, { inputSchema: object, annotations: { readOnlyHint: "yes" } }, { inputSchema: object, _meta: [] },
  { inputSchema: object, outputSchema: { type: "array" } }, { inputSchema: object, outputSchema: { type: "object", $ref: "#/$defs/none" } },
  { inputSchema: object, icons: [{ href: "x" }] },
].map((definition, i) => ({ name: `wrong${i}`, ...definition }));
const tools = [{ name: "first", inputSchema: object }, ...wrong, { name: "last", inputSchema: object }];

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const results = {
    initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "wrong", version: "1.0.0" } },
    "tools/list": { tools },
    "tools/call": { content: [{ type: "text", text: "called" }] },
  };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? {} }));
});
