import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, take, type Schemas, type User } from "../api/client";
import { refresh } from "../api/refresh";

export type Member = Schemas["Members"]["members"][number];
export type WorkspaceInfo = Schemas["WorkspaceInfos"]["workspaces"][number];

export const nameOf = (u: Pick<User, "id" | "displayName" | "email">) => u.displayName || u.email || u.id;

export const useUsers = (enabled = true) =>
  useQuery({ enabled, queryKey: ["users"], queryFn: async () => (await take(api.GET("/v1/users"))).users });

export const useWorkspaces = () =>
  useQuery({ queryKey: ["workspaces"], queryFn: async () => (await take(api.GET("/v1/workspaces"))).workspaces });

export const useMembers = (id: string) =>
  useQuery({
    queryKey: ["members", id],
    queryFn: async () => (await take(api.GET("/v1/workspaces/{id}/members", { params: { path: { id } } }))).members,
  });

/** Changes people or workspaces. The server checks the person's rights. */
export function usePeopleChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: () => Promise<unknown>) => change(),
    onSettled: () => {
      refresh(queries, ["users", "workspaces", "members", "bootstrap"]);
    },
  });
}

type MemberRole = Member["role"];

export const putMember = (id: string, user: string, role: MemberRole) => () =>
  take(api.POST("/v1/workspaces/{id}/members", { params: { path: { id } }, body: { user, role } }));
export const removeMember = (id: string, user: string) => () =>
  take(api.DELETE("/v1/workspaces/{id}/members/{user}", { params: { path: { id, user } } }));
export const setRole = (id: string, orgRole: User["orgRole"]) => () =>
  take(api.PATCH("/v1/users/{id}", { params: { path: { id } }, body: { orgRole } }));
export const deleteUser = (id: string) => () => take(api.DELETE("/v1/users/{id}", { params: { path: { id } } }));
export const createWorkspace = (name: string) => () => take(api.POST("/v1/workspaces", { body: { name } }));
export const renameWorkspace = (id: string, name: string) => () =>
  take(api.PATCH("/v1/workspaces/{id}", { params: { path: { id } }, body: { name } }));
export const deleteWorkspace = (id: string) => () =>
  take(api.DELETE("/v1/workspaces/{id}", { params: { path: { id } } }));
