import { useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { toast, toastError } from "../ui/Toast";
import { api, take, type Schemas } from "./client";
import { refresh } from "./refresh";
import { useSession } from "./session";

export type Health = Schemas["BundleHealth"];
export type AppDetails = Schemas["AppDetails"];
export type ConfigField = Schemas["ConfigField"];

export function useApps(enabled = true) {
  const { workspace } = useSession();
  return useQuery({
    enabled,
    queryKey: ["apps", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/apps"))).apps,
  });
}

export function useHealth() {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["health", workspace.id],
    refetchInterval: 15_000,
    queryFn: async () => new Map((await take(api.GET("/v1/bundles/health"))).map((h): [string, Health] => [h.name, h])),
  });
}

export function useAppDetails(name: string) {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["app", workspace.id, name],
    queryFn: () => take(api.GET("/v1/apps/{name}", { params: { path: { name } } })),
  });
}

export function usePermissions(name: string) {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["permissions", workspace.id, name],
    queryFn: () => take(api.GET("/v1/apps/{name}/permissions", { params: { path: { name } } })),
  });
}

export type AppAction = "start" | "stop" | "restart" | "update" | "uninstall";

const done: Record<Exclude<AppAction, "uninstall">, string> = {
  start: "started",
  stop: "stopped",
  restart: "restarted",
  update: "updated",
};

type At = { params: { path: { name: string } } };

const send: Record<AppAction, (at: At) => Promise<unknown>> = {
  start: (at) => api.POST("/v1/apps/{name}/start", at),
  stop: (at) => api.POST("/v1/apps/{name}/stop", at),
  restart: (at) => api.POST("/v1/apps/{name}/restart", at),
  update: (at) => api.POST("/v1/apps/{name}/update", at),
  uninstall: (at) => api.DELETE("/v1/apps/{name}", at),
};

const undoFor = 58_000; // the server allows a minute

const refreshApps = (queries: QueryClient) => refresh(queries, ["apps", "app", "health", "tools"]);

/** Shows that an app was uninstalled, and offers to undo this for as long as the server can. */
function offerUndo(queries: QueryClient, workspace: string, name: string): void {
  const undo = () => {
    api
      .POST("/v1/apps/{name}/restore", { params: { path: { name } }, headers: { "X-Workspace-Id": workspace } })
      .then(
        () => toast(`${name} has been restored.`),
        (error: unknown) => toastError(error, undo),
      )
      .finally(() => refreshApps(queries));
  };
  toast(`${name} has been uninstalled.`, false, { label: "Undo", run: undo, for: undoFor });
}

/** Performs an action on an app and shows the outcome. */
export function useAppAction() {
  const queries = useQueryClient();
  const { workspace } = useSession();
  return useMutation({
    mutationFn: ({ name, action }: { name: string; action: AppAction }) => send[action]({ params: { path: { name } } }),
    onSuccess: (_, { name, action }) => {
      if (action === "uninstall") offerUndo(queries, workspace.id, name);
      else toast(`${name} was ${done[action]}.`);
    },
    onSettled: () => refreshApps(queries),
  });
}
