import createClient from "openapi-fetch";
import { answerTo } from "./early";
import { errorOf } from "./http";
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

/** The client of /v1. Its types are generated from the server's own description. */
export const api = createClient<paths>({ fetch: answerTo });

/** The data of an answer, or the error that it is. */
export async function take<T>(pending: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await pending;
  if (response.ok) return data as T;
  const body = JSON.stringify(error ?? {});
  throw await errorOf(new Response(response.status === 401 ? null : body, { status: response.status, headers: response.headers }));
}
