import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { components } from "../api/schema";
import { request } from "../api/http";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";
import { useIdle } from "../ui/idle";
import { toast, toastError } from "../ui/Toast";

export type Approval = components["schemas"]["Approval"];
export type Pin = components["schemas"]["PinChange"];

/** Whether a call can still be decided on. */
export const isPending = (a: Approval) => a.state === "pending" && Date.parse(a.expiresAt) > Date.now();

/** The calls that wait for a person; with recent, also the last ones that did. */
export function useApprovals({ enabled = true, every = 15_000, recent = false } = {}) {
  const { workspace } = useSession();
  return useQuery({
    enabled, queryKey: ["approvals", workspace.id, recent ? "recent" : "pending"], refetchInterval: every,
    queryFn: async () => (await request<components["schemas"]["Approvals"]>("GET", recent ? "/v1/approvals?limit=100" : "/v1/approvals?state=pending")).approvals,
  });
}

/** The decisions of people on calls, the last one first, in pages. */
export function useDecided() {
  const { workspace } = useSession();
  return useInfiniteQuery({
    queryKey: ["approvals", workspace.id, "decided"], initialPageParam: "",
    queryFn: ({ pageParam }) => request<components["schemas"]["Approvals"]>("GET", `/v1/approvals?state=decided&limit=20${pageParam && `&cursor=${encodeURIComponent(pageParam)}`}`),
    getNextPageParam: (page) => page.nextCursor ?? undefined,
  });
}

/** The tools whose calls are allowed until their definition changes. */
export function useAlways() {
  const { workspace, isWorkspaceAdmin } = useSession();
  return useQuery({
    enabled: isWorkspaceAdmin, queryKey: ["always", workspace.id],
    queryFn: async () => (await request<{ always: components["schemas"]["StandingApproval"][] }>("GET", "/v1/approvals/always")).always,
  });
}

/** The tools that are held back because their definition changed. */
export function usePins(enabled = true) {
  const { workspace } = useSession();
  return useQuery({ enabled, queryKey: ["pins", workspace.id], queryFn: async () => (await request<{ pins: Pin[] }>("GET", "/v1/pins")).pins });
}

/** The changed tools that nobody has decided on. */
export function useHeldTools(): Pin[] {
  const { data = [] } = usePins(useIdle());
  return data.filter((pin) => pin.state === "waiting");
}

/** How many decisions wait for a person. */
export function useWaiting(): number {
  const { data = [] } = useApprovals({ enabled: useIdle() });
  return data.filter(isPending).length + useHeldTools().length;
}

/** Decides on a call or a changed tool, and says what came of it. */
export function useDecision(key: "approvals" | "pins") {
  const queries = useQueryClient();
  const [busy, setBusy] = useState("");
  const decide = async (path: string, decision: string, result: string, reason?: string) => {
    setBusy(path);
    try {
      await request("POST", path, { body: { decision, ...(reason && { reason }) } });
      toast(result);
    } catch (error) {
      toastError(error, () => void decide(path, decision, result, reason));
    }
    setBusy("");
    refresh(queries, [key, "always"]);
  };
  return { busy, decide };
}
