import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEndpoints } from "../api/endpoints";
import { request } from "../api/http";
import { system } from "../api/tools";
import type { User } from "../api/client";
import { toastError } from "../ui/Toast";

export interface Member {
  user?: User;
  id?: string;
  userId?: string;
  email?: string;
  displayName?: string;
  role: string;
}

export interface WorkspaceInfo {
  id: string;
  name: string;
  members?: number;
  apps?: number;
  personal?: boolean;
  createdAt?: string;
}

export const idOf = (m: Member) => m.user?.id ?? m.userId ?? m.id ?? "";
export const nameOf = (m: { displayName?: string; email?: string; id?: string }) => m.displayName || m.email || m.id || "";

/** People come over /v1 where it has them, else from the service's own tools. */
export function useUsers() {
  const { has, ready } = useEndpoints();
  return useQuery({
    queryKey: ["users"], enabled: ready,
    queryFn: async () => (has("get /v1/users") ? await request<{ users: User[] }>("GET", "/v1/users") : await system<{ users: User[] }>("manage_users", { action: "list" })).users,
  });
}

export function useWorkspaces() {
  const { has, ready } = useEndpoints();
  return useQuery({
    queryKey: ["workspaces"], enabled: ready,
    queryFn: async () => (has("get /v1/workspaces") ? await request<{ workspaces: WorkspaceInfo[] }>("GET", "/v1/workspaces") : await system<{ workspaces: WorkspaceInfo[] }>("manage_workspaces", { action: "list" })).workspaces,
  });
}

export function useMembers(workspace: string) {
  const { has, ready } = useEndpoints();
  return useQuery({
    queryKey: ["members", workspace], enabled: ready,
    queryFn: async () => (has("get /v1/workspaces/{}/members")
      ? await request<{ members: Member[] }>("GET", `/v1/workspaces/${workspace}/members`)
      : await system<{ members: Member[] }>("manage_workspaces", { action: "list_members", workspace })).members,
  });
}

/** A change to people or workspaces, by the service's own tools: their rights are checked there. */
export function usePeopleChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ tool, ...args }: { tool: "manage_users" | "manage_workspaces"; [key: string]: unknown }) => system<unknown>(tool, args),
    onError: toastError,
    onSettled: () => {
      for (const key of ["users", "workspaces", "members", "bootstrap"]) void queries.invalidateQueries({ queryKey: [key] });
    },
  });
}
