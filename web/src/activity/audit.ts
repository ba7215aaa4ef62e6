import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, take, type Schemas } from "../api/client";
import { useSession } from "../api/session";
import { nameOf } from "../people/data";

export type AuditRecord = Schemas["AuditRecord"];

export interface AuditFilter {
  actor: string;
  action: string;
  target: string;
  outcome: string;
  from: string;
  to: string;
}

export const everything: AuditFilter = { actor: "", action: "", target: "", outcome: "", from: "", to: "" };

const asked = (filter: AuditFilter) => Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));

const page = (filter: AuditFilter, limit: number, cursor?: string, signal?: AbortSignal) =>
  take(api.GET("/v1/audit", { params: { query: { ...asked(filter), limit, cursor } }, signal }));

/** Returns the records that match a filter, newest first. */
export function useAudit(filter: AuditFilter) {
  const { workspace } = useSession();
  return useInfiniteQuery({
    queryKey: ["audit", workspace.id, filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => page(filter, 200, pageParam, signal),
    getNextPageParam: (last) => last.nextCursor ?? undefined,
  });
}

const most = 100_000;

/** Returns the records that match a filter, up to 100,000. */
export async function exportAudit(filter: AuditFilter): Promise<AuditRecord[]> {
  const all: AuditRecord[] = [];
  for (let cursor: string | undefined; all.length < most;) {
    const { records, nextCursor } = await page(filter, 1000, cursor);
    all.push(...records);
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  return all;
}

const suffix = ".ended";

/** Removes the first record of an action if a later record reports its end, because that record includes everything.
 * An action without an end is kept, because the server may have stopped before the end. The newest record comes
 * first. */
export function withoutBegun(records: AuditRecord[]): AuditRecord[] {
  const ends = new Map<string, number>(); // the number of ends whose start has not been found yet
  return records.filter(({ requestId, callId, action, target, outcome }) => {
    const isCall = outcome === "allowed" || action.endsWith(suffix);
    // A request makes one change but may make several calls. Records from older versions have no callId.
    const key = callId ?? `${requestId} ${action.replace(suffix, "")} ${isCall ? target : ""}`;
    const left = ends.get(key) ?? 0;
    if (outcome !== "begun" && outcome !== "allowed") ends.set(key, left + 1);
    else if (left > 0) ends.set(key, left - 1);
    else return true;
    return outcome !== "begun" && outcome !== "allowed";
  });
}

/** Returns the names of the people that this admin can see, by id. */
export function usePeople(): Map<string, string> {
  const { workspace, user, isOrgAdmin } = useSession();
  const { data } = useQuery({
    queryKey: isOrgAdmin ? ["users"] : ["members", workspace.id],
    queryFn: async () => {
      if (isOrgAdmin) return (await take(api.GET("/v1/users"))).users;
      return (await take(api.GET("/v1/workspaces/{id}/members", { params: { path: { id: workspace.id } } }))).members;
    },
    select: (people) => people.map((p) => ("user" in p ? p.user : p)),
  });
  return useMemo(() => new Map([user, ...(data ?? [])].map((p) => [p.id, nameOf(p)])), [user, data]);
}
