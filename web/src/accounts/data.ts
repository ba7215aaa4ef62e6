import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useApps } from "../api/apps";
import { api, take, type Schemas } from "../api/client";
import { useFacts, useSession, type Facts } from "../api/session";

export type Account = Schemas["Account"];

/** Returns the accounts that the person can see: their own and shared ones, or all in the workspace for admins. */
export function useAccounts(enabled = true) {
  const { workspace, isWorkspaceAdmin } = useSession();
  return useQuery({
    enabled,
    queryKey: ["accounts", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/accounts"))).accounts,
    refetchInterval: isWorkspaceAdmin ? 30_000 : false, // no event announces changes to other people’s accounts
  });
}

/** Returns the accounts that the person can use at an app. */
export function useOwnAccounts(app: string): Account[] {
  const { user } = useSession();
  const { data: apps } = useApps();
  const { data = [] } = useAccounts(apps?.some((one) => one.name === app && one.auth !== undefined) ?? false);
  return data.filter((a) => a.app === app && (a.owner === null || a.owner === user.id));
}

const linkPath = "/v1/accounts/link";

/** Reports whether an address is the page on which accounts are linked. */
export const isLinkPage = (url: string) => URL.canParse(url) && new URL(url).pathname === linkPath;

/**
 * Returns the address of the page on which an account is linked. It must have an origin where the browser is logged in:
 * the server's configured address or the address at which the console was opened.
 */
function linkPageOf(facts: Facts | undefined, url: string): string {
  const { pathname, search } = new URL(url);
  return new URL(pathname + search, facts?.baseUrl || location.origin).href;
}

export function useLinkPage(): (url: string) => string {
  const { data: facts } = useFacts();
  return (url) => linkPageOf(facts, url);
}

/** Opens a page in a new tab, without access to the console. */
export const openPage = (url: string) => void window.open(url, "_blank", "noopener,noreferrer");

/** Opens the page on which an account is linked, and calls onLinked once the account is linked. */
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
