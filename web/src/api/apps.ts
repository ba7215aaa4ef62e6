import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { toast } from "../ui/Toast";
import { api, take, type App } from "./client";
import { request } from "./http";
import { refresh } from "./refresh";
import { useSession } from "./session";

export interface Health {
  name: string;
  uptime: number;
  restartCount: number;
}

/** Everything about one app. */
export interface AppDetails extends App {
  description?: string;
  source: { kind: string; ref: string; registry?: string };
  protected: boolean;
  restarts: number;
  /** Null when no process of the app runs on the server's machine. */
  memoryBytes: number | null;
  signature?: { signer: string; fingerprint: string; trusted: boolean };
  since?: string;
  transport?: string;
  lastError?: string;
  /** The last lines of stderr, for administrators. */
  lastOutput?: string[];
  userConfig: Record<string, ConfigField>;
  /** The names of the stored values. */
  env: string[];
}

/** A field of a bundle's user_config. Its value is never shown. */
export interface ConfigField {
  type: string;
  title?: string;
  description?: string;
  required: boolean;
  sensitive: boolean;
  isSet: boolean;
}

export function useApps(enabled = true) {
  const { workspace } = useSession();
  return useQuery({ enabled, queryKey: ["apps", workspace.id], queryFn: async () => (await take(api.GET("/v1/apps"))).apps });
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
  return useQuery({ queryKey: ["app", workspace.id, name], queryFn: () => request<AppDetails>("GET", `/v1/apps/${name}`) });
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
    onSettled: () => {
      refresh(queries, ["apps", "app", "health", "tools"]);
    },
  });
}
