// A program that uses the types in schema.d.ts, which openapi-typescript generated. It must type-check with tsc
// --strict. It sends a real server the requests that a new client would send. Its first argument is the facts as JSON,
// and it prints what it saw as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const facts: { url: string; bundle: string } = JSON.parse(process.argv[2] ?? "{}");
const api = createClient<paths>({ baseUrl: facts.url });

function good<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

const installed = good(await api.POST("/v1/apps/install", { body: { path: facts.bundle, env: { LEVEL: "1" } } }));
const apps = good(await api.GET("/v1/apps"));
const settings: components["schemas"]["AppDetails"] = good(await api.GET("/v1/apps/{name}", { params: { path: { name: installed.name } } }));
const sum = good(await api.POST("/v1/tools/call", { body: { server: installed.name, tool: "get-sum", arguments: { a: 46, b: 2 } } }));
const echoed = good(await api.POST("/v1/tools/call", { body: { tool: `${installed.name}__echo`, arguments: { message: "text" } } }));
const refused = await api.POST("/v1/tools/call", { body: { server: installed.name, tool: "get-sum", arguments: { a: "x" } } });

const answer = good(await api.POST("/v1/chat", {
  body: { message: "hello", metadata: { ticket: 7, tags: ["a"] }, attachments: [{ name: "a.txt", mimeType: "text/plain", data: "aGVsbG8=" }] },
}));
const conversation = good(await api.GET("/v1/conversations/{id}", { params: { path: { id: answer.conversationId } } }));
const copy = good(await api.POST("/v1/conversations/{id}/fork", { params: { path: { id: conversation.id } }, body: { atMessage: 1 } }));
const page = good(await api.GET("/v1/conversations", { params: { query: { limit: 10, sortBy: "createdAt" } } }));
const exported = good(await api.GET("/v1/conversations/{id}/export", { params: { path: { id: conversation.id }, query: { format: "json" } } }));
if (typeof exported === "string") throw new Error("the export is not JSON");
const restored = good(await api.POST("/v1/conversations/import", { body: exported }));
const plan = good(await api.POST("/v1/apps/import", { body: { dryRun: true, mcpServers: { here: { command: "echo", args: ["x"], env: { A: "b" } } } } }));
const document = good(await api.GET("/v1/openapi.json"));

console.log(JSON.stringify({
  installed: installed.name, listed: apps.apps.map((a) => a.name), env: settings.env, sum: sum.content[0]?.["text"], echoed: echoed.result,
  refused: refused.error?.error, response: answer.response, metadata: conversation.metadata["ticket"], forked: copy.id !== conversation.id,
  conversations: page.totalCount, restored: restored.id, planned: plan.servers[0]?.status, openapi: document["openapi"],
}));
