import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useApps } from "../api/apps";
import { api, take, type Schemas } from "../api/client";
import { useFacts, useSession, type Facts } from "../api/session";

export type Account = Schemas["Account"];

/** The accounts that the person sees: their own and the shared ones, for admins all of the workspace. */
export function useAccounts(enabled = true) {
  const { workspace, isWorkspaceAdmin } = useSession();
  return useQuery({
    enabled,
    queryKey: ["accounts", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/accounts"))).accounts,
    refetchInterval: isWorkspaceAdmin ? 30_000 : false, // no event announces the accounts of others
  });
}

/** The accounts that the person can use at an app: none where it takes none. */
export function useOwnAccounts(app: string): Account[] {
  const { user } = useSession();
  const { data: apps } = useApps();
  const { data = [] } = useAccounts(apps?.some((one) => one.name === app && one.auth !== undefined) ?? false);
  return data.filter((a) => a.app === app && (a.owner === null || a.owner === user.id));
}

const linkPath = "/v1/accounts/link";

/** Whether an address is that of the page on which accounts are linked. */
export const isLinkPage = (url: string) => URL.canParse(url) && new URL(url).pathname === linkPath;

/**
 * The page on which an account is linked, where the browser is logged in: the configured address of the server, or else the
 * one that the console was opened at.
 */
function linkPageOf(facts: Facts | undefined, url: string): string {
  const { pathname, search } = new URL(url);
  return new URL(pathname + search, facts?.baseUrl || location.origin).href;
}

export function useLinkPage(): (url: string) => string {
  const { data: facts } = useFacts();
  return (url) => linkPageOf(facts, url);
}

/** Opens a page next to the console, without a way back into it. */
export const openPage = (url: string) => void window.open(url, "_blank", "noopener,noreferrer");

/** Sends the person to the page of a link, and calls onLinked once the account is linked. */
export function useLinking(app: string, name: string, onLinked: () => void) {
  const { user } = useSession();
  const linkPage = useLinkPage();
  const accounts = useAccounts();
  const [waiting, setWaiting] = useState<{ page: string; before?: string }>();
  const account = accounts.data?.find(
    (a) => a.app === app && a.name === name && (a.owner === null || a.owner === user.id),
  );
  const linked =
    waiting && account?.state === "active" && account.linkedAt !== waiting.before ? account.linkedAt : undefined;
  const reported = useRef<string>(undefined);
  useEffect(() => {
    if (linked === undefined || reported.current === linked) return;
    reported.current = linked;
    onLinked();
  }, [linked, onLinked]);
  const open = (url: string) => {
    setWaiting({ page: url, before: account?.linkedAt });
    openPage(linkPage(url));
  };
  return { page: linked === undefined ? waiting?.page : undefined, open };
}
