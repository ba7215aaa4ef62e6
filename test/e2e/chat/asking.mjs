// A bundle that supports only MCP 2026-07-28. Its tool asks a question by returning the question as a result.
import { createInterface } from "node:readline";

const version = "io.modelcontextprotocol/protocolVersion";
const say = (id, rest) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...rest }));
const question = {
  method: "elicitation/create",
  params: { mode: "form", message: "Which word?", requestedSchema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] } },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (params?._meta?.[version] !== "2026-07-28") {
    say(id, { error: { code: -32022, message: "unsupported protocol version", data: { supported: ["2026-07-28"] } } });
    return;
  }
  const text = (text) => say(id, { result: { resultType: "complete", content: [{ type: "text", text }] } });
  switch (method) {
    case "server/discover":
      return say(id, { result: { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, _meta: { "io.modelcontextprotocol/serverInfo": { name: "asking", version: "1.0.0" } } } });
    case "tools/list":
      return say(id, { result: { resultType: "complete", tools: [{ name: "word", inputSchema: { type: "object" } }], ttlMs: 0, cacheScope: "private" } });
    case "tools/call":
      if (params.requestState !== "asked") return say(id, { result: { resultType: "input_required", requestState: "asked", inputRequests: { word: question } } });
      return text(`the reply is ${JSON.stringify(params.inputResponses.word)}`);
    default:
      return say(id, { result: { resultType: "complete" } });
  }
});
