import { useQuery } from "@tanstack/react-query";
import { api, take, type Schemas } from "../api/client";
import { useSession } from "../api/session";

/** The calls to an app in one hour. */
export interface Hour {
  /** When the hour begins. */
  at: number;
  calls: number;
  errors: number;
  /** The median duration of a call in milliseconds, or null if there were no calls. */
  median: number | null;
}

const hour = 3_600_000;
const hours = 24;
const mostPages = 10; // of 1,000 records each

type Call = Pick<Schemas["AuditRecord"], "time" | "target" | "outcome" | "durationMs">;

/** Groups calls by hour, for the last 24 hours. The oldest hour comes first. */
export function hoursOf(calls: Call[], now: number): Hour[] {
  const last = Math.floor(now / hour) * hour;
  return Array.from({ length: hours }, (_, i) => {
    const at = last - (hours - 1 - i) * hour;
    const own = calls.filter(({ time }) => Date.parse(time) >= at && Date.parse(time) < at + hour);
    const times = own.map((call) => call.durationMs ?? 0).sort((a, b) => a - b);
    return {
      at,
      calls: own.length,
      errors: own.filter(({ outcome }) => outcome !== "ok" && outcome !== "input_required").length,
      median: times.length > 0 ? times[Math.floor((times.length - 1) / 2)]! : null,
    };
  });
}

/** Returns the calls to an app in the last 24 hours, from the audit trail. */
export function useCalls(app: string) {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["calls", workspace.id, app],
    refetchInterval: 60_000,
    queryFn: async ({ signal }) => {
      const now = Date.now();
      const from = new Date(Math.floor(now / hour) * hour - (hours - 1) * hour).toISOString();
      const calls: Call[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < mostPages; page++) {
        const query = {
          workspaceId: workspace.id,
          action: "tools.call.ended",
          target: `${app}__`,
          from,
          limit: 1000,
          cursor,
        };
        const { records, nextCursor } = await take(api.GET("/v1/audit", { params: { query }, signal }));
        calls.push(...records.filter(({ target = "" }) => target.startsWith(`${app}__`)));
        if (nextCursor === null) break;
        cursor = nextCursor;
      }
      return hoursOf(calls, now);
    },
  });
}
