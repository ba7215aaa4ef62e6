import createClient from "openapi-fetch";
import { nextTask } from "../ui/idle";
import { parseJson, toJson } from "./digits";
import { answerTo } from "./early";
import { errorOf, identify } from "./http";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type App = Schemas["App"];
export type AppState = Schemas["State"];
export type User = Schemas["User"];
export type WorkspaceRef = Schemas["WorkspaceRef"];
export type ConversationSummary = Schemas["ConversationSummary"];
export type Message = Schemas["Message"];
export type ToolCall = Schemas["ToolCall"];
export type ToolResult = Schemas["ToolResult"];
export type ChatAnswer = Schemas["ChatAnswer"];
export type UsageTotals = Schemas["UsageTotals"];
export type Skill = Schemas["Skill"];

/** Sends a request. It throws error responses as ApiErrors, and parses JSON without losing digits. The copy of the
 * response has a Content-Length, because openapi-fetch calls json() only for such responses. */
async function fetchExactly(request: Request): Promise<Response> {
  identify(request); // now, because the workspace may change before the request is sent
  if (request.method === "GET") await nextTask(); // sending takes time, and a screen makes several requests while it renders
  const response = await answerTo(request);
  if (!response.ok) throw await errorOf(response);
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) return response;
  const text = await response.text();
  const exact = new Response(text, {
    status: response.status,
    headers: { "Content-Type": "application/json", "Content-Length": String(text.length) },
  });
  exact.json = () => Promise.resolve(parseJson(text));
  return exact;
}

/** The client for /v1. Its types are generated from the server's OpenAPI document. */
export const api = createClient<paths>({ fetch: fetchExactly, bodySerializer: (body: unknown) => toJson(body) });

/** The options of a request whose response is a stream of events. */
export const eventStream = { parseAs: "stream", headers: { Accept: "text/event-stream" } } as const;

/** Returns the data of a response. Errors are ApiErrors. */
export async function take<T>(pending: Promise<{ data?: T }>): Promise<T> {
  return (await pending).data as T;
}
