import { useInfiniteQuery } from "@tanstack/react-query";
import { ScrollText } from "lucide-react";
import { useEffect, useState } from "react";
import { request } from "../api/http";
import { useSession } from "../api/session";
import { Search } from "../ui/Field";
import { moment } from "../ui/format";
import { Badge, Card, Empty, Failure, Skeleton } from "../ui/Surface";
import { VirtualRows } from "../ui/VirtualRows";
import css from "./activity.module.css";

interface Entry {
  id?: string | number;
  time?: string;
  at?: string;
  actor?: string | { email?: string; id?: string; name?: string };
  action?: string;
  target?: string | { name?: string; id?: string };
  outcome?: string;
  message?: string;
}

interface Answer {
  entries?: Entry[];
  events?: Entry[];
  records?: Entry[];
  nextCursor?: string | null;
}

const nameOf = (who: Entry["actor"] | Entry["target"]): string => {
  if (!who) return "";
  if (typeof who === "string") return who;
  return ("email" in who && who.email) || who.name || who.id || "";
};

/** Who did what, from the record. */
export function AuditTrail() {
  const { workspace } = useSession();
  const [query, setQuery] = useState("");
  const [words, setWords] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWords(query.trim()), 250);
    return () => clearTimeout(timer);
  }, [query]);
  const pages = useInfiniteQuery({
    queryKey: ["audit", workspace.id, words],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => request<Answer>("GET", "/v1/audit", { query: { limit: 100, cursor: pageParam, search: words } }),
    getNextPageParam: (last) => last.nextCursor ?? undefined,
  });
  const entries = pages.data?.pages.flatMap((p) => p.entries ?? p.events ?? p.records ?? []) ?? [];
  return (
    <div style={{ display: "grid", gap: 16 }}>
      <div className={css.bar}><Search label="Search the audit trail" value={query} onChange={(e) => setQuery(e.target.value)} /></div>
      <Card flush>
        {pages.error ? <Failure error={pages.error} /> : pages.isPending ? <div style={{ padding: 16 }}><Skeleton lines={6} /></div> : entries.length === 0
          ? <Empty icon={<ScrollText aria-hidden="true" />} title="Nothing recorded" />
          : (
            <div className={css.rows}>
              <VirtualRows
                label="Audit trail" items={entries} size={54} max="fill" keyOf={(e) => e.id ?? entries.indexOf(e)}
                onEnd={() => { if (pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage(); }}
                render={(e) => (
                  <div className={css.row}>
                    <time>{moment(e.time ?? e.at ?? "")}</time>
                    <Badge tone={/ok|success|allowed/.test(e.outcome ?? "ok") ? "good" : "bad"} dot>{e.action ?? "?"}</Badge>
                    <p>{nameOf(e.actor)} {nameOf(e.target) && <>→ {nameOf(e.target)}</>} <small>{e.message ?? e.outcome}</small></p>
                  </div>
                )}
              />
            </div>
          )}
      </Card>
    </div>
  );
}
