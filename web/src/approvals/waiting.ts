import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, take, type Schemas } from "../api/client";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";
import { useIdle } from "../ui/idle";
import { toast, toastError } from "../ui/Toast";

export type Approval = Schemas["Approval"];
export type Pin = Schemas["PinChange"];

/** Reports whether a call can still be decided on. */
export const isPending = (a: Approval) => a.state === "pending" && Date.parse(a.expiresAt) > Date.now();

/** Returns the waiting calls. With recent, it also returns the latest decided ones. */
export function useApprovals({ enabled = true, every = 15_000, recent = false } = {}) {
  const { workspace } = useSession();
  return useQuery({
    enabled,
    queryKey: ["approvals", workspace.id, recent ? "recent" : "pending"],
    refetchInterval: every,
    queryFn: async () => {
      const all: Approval[] = [];
      let cursor: string | undefined;
      do {
        // A page with long arguments is short: one person's calls must not hide those of others.
        const query = recent ? { limit: 100 } : { state: "pending" as const, cursor };
        const page = await take(api.GET("/v1/approvals", { params: { query } }));
        all.push(...page.approvals);
        cursor = recent ? undefined : (page.nextCursor ?? undefined);
      } while (cursor);
      return all;
    },
  });
}

/** Returns the decided calls in pages, latest first. */
export function useDecided() {
  const { workspace } = useSession();
  return useInfiniteQuery({
    queryKey: ["approvals", workspace.id, "decided"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      take(api.GET("/v1/approvals", { params: { query: { state: "decided", limit: 20, cursor: pageParam } } })),
    getNextPageParam: (page) => page.nextCursor ?? undefined,
  });
}

/** Returns the tools that are allowed until their definition changes. */
export function useAlways() {
  const { workspace, isWorkspaceAdmin } = useSession();
  return useQuery({
    enabled: isWorkspaceAdmin,
    queryKey: ["always", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/approvals/always"))).always,
  });
}

/** Returns the tools that are held back because their definition changed. */
export function usePins(enabled = true) {
  const { workspace } = useSession();
  return useQuery({
    enabled,
    queryKey: ["pins", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/pins"))).pins,
  });
}

/** Returns the changed tools that are waiting for a decision. */
export function useHeldTools(): Pin[] {
  const { data = [] } = usePins(useIdle());
  return data.filter((pin) => pin.state === "waiting");
}

/** Returns the number of decisions that are waiting to be made. */
export function useWaiting(): number {
  const { data = [] } = useApprovals({ enabled: useIdle() });
  return data.filter(isPending).length + useHeldTools().length;
}

/** Sends a decision on a call or a changed tool and shows the outcome. */
export function useDecision(key: "approvals" | "pins") {
  const queries = useQueryClient();
  const [busy, setBusy] = useState("");
  const decide = async (id: string, send: () => Promise<unknown>, result: string) => {
    setBusy(id);
    try {
      await send();
      toast(result);
    } catch (error) {
      toastError(error, () => void decide(id, send, result));
    }
    setBusy("");
    refresh(queries, [key, "always"]);
  };
  return { busy, decide };
}
