import { useQuery } from "@tanstack/react-query";
import type { JsonSchema } from "../forms/schema";
import { api, take, type ToolResult } from "./client";
import { useEndpoints } from "./endpoints";
import { request } from "./http";
import { useSession } from "./session";

/** A tool as an app describes it. name is server__tool. */
export interface Tool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: { title?: string; readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean };
  _meta?: Record<string, unknown> & { ui?: { resourceUri?: string; visibility?: string[] } };
}

export const serverOf = (tool: { name: string }) => tool.name.slice(0, Math.max(0, tool.name.indexOf("__")));
export const bareName = (tool: { name: string }) => tool.name.slice(tool.name.indexOf("__") + 2);
export const titleOf = (tool: Tool) => tool.title ?? tool.annotations?.title ?? bareName(tool);
export const viewOf = (tool: Tool) => tool._meta?.ui?.resourceUri ?? (tool._meta?.["ui/resourceUri"] as string | undefined);

/** Calls a tool of the service itself, whose answer is JSON. */
export async function system<T>(tool: string, args: Record<string, unknown>): Promise<T> {
  const answer = await take(api.POST("/v1/tools/call", { body: { tool: `system__${tool}`, arguments: args } }));
  if (answer.isError) throw new Error(typeof answer.result === "string" ? answer.result : JSON.stringify(answer.result));
  return (answer.structuredContent ?? answer.result) as T;
}

/** The tools of the workspace with their schemas. */
export function useTools() {
  const { workspace } = useSession();
  const { has, ready } = useEndpoints();
  const listed = has("get /v1/tools");
  return useQuery({
    queryKey: ["tools", workspace.id, listed],
    enabled: ready,
    queryFn: async () => {
      const answer = listed
        ? await request<{ tools: Tool[] }>("GET", "/v1/tools")
        : await system<{ tools: Tool[] }>("search", { query: "", scope: "tools", limit: 100 });
      return answer.tools;
    },
  });
}

/** Calls a tool as the person, outside of any chat. */
export const callTool = (tool: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult> =>
  take(api.POST("/v1/tools/call", { body: { tool, arguments: args }, signal }));
