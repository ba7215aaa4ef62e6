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

/** The records that fit a filter, the newest first. */
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

/** All records that fit a filter, 100,000 at most. */
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

/**
 * Without what was only begun: the record of its end says the same, and more. What has no end stays, since the
 * server may have stopped in between.
 */
export function withoutBegun(records: AuditRecord[]): AuditRecord[] {
  const ended = new Set(records.filter((r) => r.outcome !== "begun").map((r) => `${r.requestId} ${r.action}`));
  return records.filter((r) => r.outcome !== "begun" || !ended.has(`${r.requestId} ${r.action}`));
}

/** The people whom this admin may know, by id. */
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
