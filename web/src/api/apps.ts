import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { toast, toastError } from "../ui/Toast";
import { api, take, type App } from "./client";
import { useEndpoints } from "./endpoints";
import { request } from "./http";
import { useSession } from "./session";

export interface Health {
  name: string;
  uptime: number;
  restartCount: number;
}

/** More of one app, where the server tells it. Each field may be absent. */
export interface AppDetails extends App {
  description?: string;
  source?: { kind?: string; ref?: string } | string;
  protected?: boolean;
  lastError?: string | { message?: string; stderr?: string[] } | null;
  restarts?: number;
  restartCount?: number;
  since?: string | null;
  uptime?: number;
  memory?: number;
  memoryBytes?: number;
  userConfig?: unknown;
  settings?: Setting[];
  env?: unknown;
}

export interface Setting {
  name: string;
  title?: string;
  description?: string;
  sensitive?: boolean;
  required?: boolean;
  set?: boolean;
  value?: unknown;
}

export function useApps() {
  const { workspace } = useSession();
  return useQuery({ queryKey: ["apps", workspace.id], queryFn: async () => (await take(api.GET("/v1/apps"))).apps });
}

export function useHealth() {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["health", workspace.id],
    refetchInterval: 15_000,
    queryFn: async () => new Map((await take(api.GET("/v1/bundles/health"))).map((h) => [h.name, h as Health])),
  });
}

export function useAppDetails(name: string) {
  const { workspace } = useSession();
  const { has } = useEndpoints();
  return useQuery({ queryKey: ["app", workspace.id, name], enabled: has("get /v1/apps/{}"), queryFn: () => request<AppDetails>("GET", `/v1/apps/${name}`) });
}

export type AppAction = "start" | "stop" | "restart" | "update" | "uninstall";

const done: Record<AppAction, string> = { start: "started", stop: "stopped", restart: "restarted", update: "updated", uninstall: "uninstalled" };

/** Does something with an app, and says what came of it. */
export function useAppAction() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ name, action }: { name: string; action: AppAction }) => {
      if (action === "uninstall") return await request<unknown>("DELETE", `/v1/apps/${name}`);
      return await request<unknown>("POST", `/v1/apps/${name}/${action}`);
    },
    onSuccess: (_, { name, action }) => toast(`${name} is ${done[action]}.`),
    onError: toastError,
    onSettled: () => {
      for (const key of ["apps", "app", "health", "tools"]) void queries.invalidateQueries({ queryKey: [key] });
    },
  });
}
