import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  type ComponentType,
  type ReactNode,
} from "react";
import { api, take, type User, type WorkspaceRef } from "./client";
import { answerTo, tokenKey, workspaceKey } from "./early";
import { ApiError, identity, isUnreachable } from "./http";
import { forgetDrafts } from "./leave";
import { refreshAll } from "./refresh";
import { claimTab } from "./tab";
import { toast } from "../ui/Toast";

/** Facts that the server reveals before a login. */
export interface Facts {
  product: string;
  version: string;
  dev: boolean;
  apiKey: boolean;
  /** Whether an identity provider is configured. browserLogin says whether people can log in on its page. */
  login: boolean;
  browserLogin?: boolean;
  baseUrl?: string;
  viewOrigin: string;
}

export interface Session {
  facts: Facts;
  user: User;
  workspace: WorkspaceRef;
  workspaces: WorkspaceRef[];
  /** Whether the person is an admin of the workspace. isOrgAdmin is the same for the organization. */
  isWorkspaceAdmin: boolean;
  isOrgAdmin: boolean;
  model: string | null;
  /** The workspace's instructions for every model; "" if there are none. */
  instructions: string;
  switchTo(workspace: string): void;
  logout(): Promise<void>;
}

const Context = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(Context);
  if (!session) throw new Error("useSession was called outside a session");
  return session;
}

const factsQuery = {
  queryKey: ["facts"],
  staleTime: Infinity,
  retryOnMount: false,
  queryFn: async () => (await (await answerTo("/console/facts.json")).json()) as Facts,
};

export const useFacts = () => useQuery(factsQuery);

async function bootstrap() {
  const asked = identity.workspace;
  let found;
  try {
    found = await take(api.GET("/v1/workspace"));
  } catch (error) {
    if (!(error instanceof ApiError) || ![403, 404].includes(error.status) || !asked || identity.workspace !== asked)
      throw error;
    identity.workspace = ""; // the person is not a member of that workspace
    found = await take(api.GET("/v1/workspace"));
    toast(`You are not a member of the workspace in the address. You are now in ${found.workspace.name}.`, true);
    localStorage.setItem(workspaceKey, found.workspace.id);
  }
  if (identity.workspace === asked || identity.workspace === "") identity.workspace = found.workspace.id;
  return found;
}

type Boot = Awaited<ReturnType<typeof bootstrap>>;

/** Returns a sentence about what has changed for the person, or "" if nothing has. */
function changeOf(before: Boot, now: Boot): string {
  if (before.user.id !== now.user.id) return "";
  if (before.user.orgRole !== now.user.orgRole) return `You are now ${roleName(now.user.orgRole)} of the organization.`;
  if (before.workspace.id === now.workspace.id && before.workspace.role !== now.workspace.role) {
    return `You are now ${roleName(now.workspace.role)} of ${now.workspace.name}: ${now.workspace.role === "member" ? "only admins can manage its apps and members" : "you can manage its apps and members"}.`;
  }
  const added = now.workspaces.find((w) => !before.workspaces.some((b) => b.id === w.id));
  if (added) return `You were added to ${added.name}. You can switch to it in the workspace menu.`;
  const left = before.workspaces.find(
    (w) => w.id !== before.workspace.id && !now.workspaces.some((n) => n.id === w.id),
  );
  return left ? `You are no longer a member of ${left.name}.` : "";
}

const roleName = (role: string) => (role === "member" ? "a member" : `an ${role}`);

const bootQuery = (workspace: string) => ({
  queryKey: ["bootstrap", workspace],
  queryFn: bootstrap,
  retry: retryUnlessRefused,
  retryOnMount: false,
  staleTime: 30_000,
  refetchInterval: 30_000,
});

/** Waits briefly for the data of the first render, so that the whole page appears at once. */
export const beforeFirstRender = (queries: QueryClient) =>
  Promise.race([
    Promise.all([queries.prefetchQuery(factsQuery), queries.prefetchQuery(bootQuery(identity.workspace)), claimTab()]),
    new Promise((resolve) => setTimeout(resolve, 1_000)),
  ]);

interface Props {
  children: ReactNode;
  loading: ReactNode;
  Login: ComponentType<{ facts: Facts; onDone: () => void }>;
  failed: (error: Error, retry: () => void) => ReactNode;
}

/** Provides the session to its children, or shows the login page. */
export function SessionProvider({ children, loading, Login, failed }: Props) {
  const queries = useQueryClient();
  const facts = useFacts();
  const [workspaceId, setWorkspaceId] = useState(identity.workspace);
  const boot = useQuery(bootQuery(workspaceId));

  useEffect(() => {
    // Show the login page if the session has ended.
    const loggedIn = boot.data !== undefined;
    identity.onUnauthenticated = () => {
      if (loggedIn) void queries.resetQueries({ queryKey: ["bootstrap"] });
    };
  }, [queries, boot.data]);

  const switchTo = useCallback(
    (id: string) => {
      identity.workspace = id;
      localStorage.setItem(workspaceKey, id);
      setWorkspaceId(id);
    },
    [setWorkspaceId],
  );
  const logout = useCallback(async () => {
    await take(api.POST("/v1/auth/logout")).catch(() => undefined);
    await forgetDrafts();
    rememberToken("");
    identity.workspace = "";
    localStorage.removeItem(workspaceKey);
    queries.clear();
    location.replace("/");
  }, [queries]);

  const hadSession = useRef(false);
  const before = useRef<Boot>(undefined);
  useEffect(() => {
    if (!boot.data) return;
    const sentence = before.current ? changeOf(before.current, boot.data) : "";
    if (sentence) {
      toast(sentence);
      refreshAll(queries, (query) => query.queryKey[0] !== "bootstrap");
    }
    hadSession.current = true;
    before.current = boot.data;
  }, [boot.data, queries]);

  const session = useMemo<Session | null>(() => {
    if (!facts.data || !boot.data) return null;
    const { user, workspace, workspaces, model, instructions } = boot.data;
    const isOrgAdmin = user.orgRole !== "member";
    return {
      facts: facts.data,
      user,
      workspace,
      workspaces,
      model,
      instructions,
      isOrgAdmin,
      isWorkspaceAdmin: isOrgAdmin || workspace.role !== "member",
      switchTo,
      logout,
    };
  }, [facts.data, boot.data, switchTo, logout]);

  if (boot.error instanceof ApiError && boot.error.status === 401 && facts.data) {
    const enter = () => {
      if (hadSession.current) return location.replace("/"); // keep nothing of the person who was logged in before
      queries.clear();
      void boot.refetch();
    };
    return <Login facts={facts.data} onDone={enter} />;
  }
  if (!session) {
    const error = facts.failureReason ?? boot.failureReason;
    return error
      ? failed(error, () => void queries.cancelQueries().then(() => Promise.all([facts.refetch(), boot.refetch()])))
      : loading;
  }
  return <Context value={session}>{children}</Context>;
}

/** Stores a token from the auth adapter for this tab. */
export function rememberToken(token: string): void {
  identity.token = token;
  if (token) sessionStorage.setItem(tokenKey, token);
  else sessionStorage.removeItem(tokenKey);
}

/** Retries while the server is unreachable. Errors that the server returned are final. */
export function retryUnlessRefused(count: number, error: Error): boolean {
  return error instanceof ApiError ? isUnreachable(error) : count < 1;
}
