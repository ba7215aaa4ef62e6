import { useQuery } from "@tanstack/react-query";
import type { JsonSchema } from "../forms/schema";
import { api, take, type ToolResult } from "./client";
import { useSession } from "./session";

/** A tool as its app describes it. name is the full name, which consists of server and tool. */
export interface Tool {
  name: string;
  server: string;
  tool: string;
  title?: string;
  description?: string;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  _meta?: Record<string, unknown> & { ui?: { resourceUri?: string; visibility?: string[] } };
}

export const titleOf = (tool: Tool) => tool.title ?? tool.annotations?.title ?? tool.tool;
export const viewOf = (tool: Tool) =>
  tool._meta?.ui?.resourceUri ?? (tool._meta?.["ui/resourceUri"] as string | undefined);

/** Calls one of the server's own tools, which return JSON. */
export async function system<T>(tool: string, args: Record<string, unknown>): Promise<T> {
  const answer = await take(api.POST("/v1/tools/call", { body: { tool: `system__${tool}`, arguments: args } }));
  if (answer.isError)
    throw new Error(typeof answer.result === "string" ? answer.result : JSON.stringify(answer.result));
  return (answer.structuredContent ?? answer.result) as T;
}

/** Returns the tools of the workspace with their schemas. */
export function useTools() {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["tools", workspace.id],
    queryFn: async () =>
      (await take(api.GET("/v1/tools"))).tools.map(
        (t) =>
          ({
            ...(t.definition as Omit<Tool, "server" | "tool">),
            name: t.name,
            server: t.server,
            tool: t.tool,
          }) as Tool,
      ),
  });
}

/** Calls a tool as the logged-in person, outside of chats. */
export const callTool = (
  tool: string,
  args: Record<string, unknown>,
  signal?: AbortSignal,
  account?: string,
): Promise<ToolResult> =>
  take(api.POST("/v1/tools/call", { body: { tool, arguments: args, ...(account && { account }) }, signal }));
