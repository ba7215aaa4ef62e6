import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { api, take, type User, type WorkspaceRef } from "./client";
import { answerTo, tokenKey, workspaceKey } from "./early";
import { ApiError, identity } from "./http";

/** What the server says of itself before anybody has logged in. */
export interface Facts {
  product: string;
  version: string;
  dev: boolean;
  apiKey: boolean;
  login: boolean;
  baseUrl?: string;
  viewOrigin: string;
}

export interface Session {
  facts: Facts;
  user: User;
  workspace: WorkspaceRef;
  workspaces: WorkspaceRef[];
  /** Whether the person may manage apps of the workspace, and the server. */
  isWorkspaceAdmin: boolean;
  isOrgAdmin: boolean;
  model: string | null;
  switchTo(workspace: string): void;
  logout(): Promise<void>;
}

const Context = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(Context);
  if (!session) throw new Error("useSession is used outside of a session");
  return session;
}

const factsQuery = { queryKey: ["facts"], staleTime: Infinity, retryOnMount: false, queryFn: async () => (await (await answerTo("/console/facts.json")).json()) as Facts };

export const useFacts = () => useQuery(factsQuery);

async function bootstrap() {
  try {
    return await take(api.GET("/v1/workspace"));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403 || !identity.workspace) throw error;
    identity.workspace = ""; // the person is no member of it any more
    return await take(api.GET("/v1/workspace"));
  }
}

const bootQuery = (workspace: string) => ({ queryKey: ["bootstrap", workspace], queryFn: bootstrap, retry: retryUnlessRefused, retryOnMount: false, staleTime: 30_000 });

/** Waits a moment for what the first render needs, so that it is one of the whole page. */
export const beforeFirstRender = (queries: QueryClient) => Promise.race([
  Promise.all([queries.prefetchQuery(factsQuery), queries.prefetchQuery(bootQuery(identity.workspace))]),
  new Promise((resolve) => setTimeout(resolve, 1_000)),
]);

interface Props {
  children: ReactNode;
  loading: ReactNode;
  login: (facts: Facts, done: () => void) => ReactNode;
  failed: (error: Error, retry: () => void) => ReactNode;
}

/** Gives what is inside a session, or shows how to get one. */
export function SessionProvider({ children, loading, login, failed }: Props) {
  const queries = useQueryClient();
  const facts = useFacts();
  const [workspaceId, setWorkspaceId] = useState(identity.workspace);
  const boot = useQuery(bootQuery(workspaceId));

  useEffect(() => {
    // Whoever was logged in and is not any more is asked to log in again.
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
    rememberToken("");
    identity.workspace = "";
    localStorage.removeItem(workspaceKey);
    queries.clear();
    location.replace("/");
  }, [queries]);

  const hadSession = useRef(false);
  if (boot.data) hadSession.current = true;

  const session = useMemo<Session | null>(() => {
    if (!facts.data || !boot.data) return null;
    const { user, workspace, workspaces, model } = boot.data;
    const isOrgAdmin = user.orgRole !== "member";
    identity.workspace = workspace.id;
    return {
      facts: facts.data, user, workspace, workspaces, model, isOrgAdmin,
      isWorkspaceAdmin: isOrgAdmin || workspace.role !== "member",
      switchTo, logout,
    };
  }, [facts.data, boot.data, switchTo, logout]);

  if (boot.error instanceof ApiError && boot.error.status === 401 && facts.data) {
    return login(facts.data, () => {
      if (hadSession.current) return location.replace("/"); // nothing of whoever was here before may stay
      queries.clear();
      void boot.refetch();
    });
  }
  const error = facts.error ?? (session ? null : boot.error);
  if (error) return failed(error, () => void Promise.all([facts.refetch(), boot.refetch()]));
  if (!session) return loading;
  return <Context value={session}>{children}</Context>;
}

/** Keeps a token of the auth adapter for this tab. */
export function rememberToken(token: string): void {
  identity.token = token;
  if (token) sessionStorage.setItem(tokenKey, token);
  else sessionStorage.removeItem(tokenKey);
}

/** Refusals stay refusals; a server that is away is asked again. */
export function retryUnlessRefused(count: number, error: Error): boolean {
  return error instanceof ApiError ? (error.status === 0 || error.status >= 502) && count < 5 : count < 1;
}
