import { Download, ScrollText } from "lucide-react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useState } from "react";
import { toJson } from "../api/digits";
import { ApiError } from "../api/http";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import { Input, Search, Select } from "../ui/Field";
import { millis, moment } from "../ui/format";
import { Badge, Card, Empty, Failure, Skeleton, type Tone } from "../ui/Surface";
import { toastError } from "../ui/Toast";
import { VirtualRows } from "../ui/VirtualRows";
import type { ActivitySearch } from "../router";
import { dryRun, phraseOf } from "./actions";
import {
  everything,
  exportAudit,
  useAudit,
  usePeople,
  withoutBegun,
  type AuditFilter,
  type AuditRecord,
} from "./audit";
import { saveLines } from "../ui/save";
import css from "./activity.module.css";

const outcomes = {
  ok: "Succeeded",
  allowed: "Allowed",
  begun: "Started",
  tool_error: "Tool error",
  forbidden: "Not permitted",
  unauthenticated: "Not logged in",
  approval_pending: "Waiting for approval",
  approval_refused: "Approval refused",
  tool_not_found: "Tool not found",
  login_needed: "Account login needed",
};

const route = getRouteApi("/activity");

/** Returns the filter from an address. */
const filterOf = ({
  person = "",
  action = "",
  tool = "",
  outcome = "",
  day = "",
  from = day,
  to = day,
}: ActivitySearch): AuditFilter => ({
  actor: person,
  action,
  target: tool,
  outcome,
  from,
  to,
});

/** Returns the address parameters for a filter. */
function searchOf({ actor, action, target, outcome, from, to }: AuditFilter): ActivitySearch {
  const when = from !== "" && from === to ? { day: from } : { from: from || undefined, to: to || undefined };
  const others = {
    person: actor || undefined,
    action: action || undefined,
    tool: target || undefined,
    outcome: outcome || undefined,
  };
  return { tab: "audit", ...others, ...when };
}

/** Shows the latest records when the page has just been opened. */
export function Earlier() {
  const { data } = useAudit(everything);
  const people = usePeople();
  const records = withoutBegun(data?.pages[0]?.records ?? []).slice(0, 20);
  if (records.length === 0) return null;
  return (
    <Card
      flush
      title="Earlier"
      actions={
        <Link to="/activity" search={{ tab: "audit" }}>
          Audit trail
        </Link>
      }
    >
      <ul aria-label="Earlier">
        {records.map((r) => (
          <li key={keyOf(r)}>
            <Row record={r} people={people} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

const keyOf = (r: AuditRecord) => `${r.time} ${r.callId ?? r.requestId} ${r.action} ${r.target} ${r.outcome}`;

/** Shows the audit trail with its filters. */
export function AuditTrail() {
  const { isOrgAdmin } = useSession();
  const asked = route.useSearch();
  const navigate = route.useNavigate();
  const [typed, setTyped] = useState(() => filterOf(asked));
  const filter = useSettled(typed);
  useEffect(() => {
    void navigate({ search: searchOf(filter), replace: true });
  }, [filter, navigate]);
  const pages = useAudit(filter);
  const people = usePeople();
  const [saving, setSaving] = useState(false);
  const change = (part: Partial<AuditFilter>) => setTyped({ ...typed, ...part });
  const records = pages.data?.pages.flatMap((p) => p.records) ?? [];
  const rows = ["begun", "allowed"].includes(filter.outcome) ? records : withoutBegun(records);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  // Even an empty page may be followed by another one.
  const few = rows.length < 50;
  useEffect(() => {
    if (few && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [few, hasNextPage, isFetchingNextPage, fetchNextPage, records.length, pages.data?.pages.length]);
  if (pages.error instanceof ApiError && pages.error.code === "not_configured") {
    return (
      <Card>
        <Empty icon={<ScrollText aria-hidden="true" />} title="Nothing is recorded">
          {isOrgAdmin ? (
            <>
              Set <code>audit.file</code> in <code>ropewalk.yaml</code> and restart the server.
            </>
          ) : (
            "An organization admin can switch on this server’s audit log."
          )}{" "}
          Logins, changes and tool calls will then be recorded and shown here.
        </Empty>
      </Card>
    );
  }
  const save = async () => {
    setSaving(true);
    await exportAudit(filter).then((all) => saveLines("audit.ndjson", all), toastError);
    setSaving(false);
  };
  return (
    <div style={{ display: "grid", gap: 16 }}>
      <div className={`${css.bar} ${css.filters}`} role="search" aria-label="Audit trail">
        <Search label="Search targets" value={typed.target} onChange={(e) => change({ target: e.target.value })} />
        <Input
          aria-label="Action"
          placeholder="Action"
          value={typed.action}
          onChange={(e) => change({ action: e.target.value })}
          className={css.filter}
        />
        <Select
          aria-label="Person"
          value={typed.actor}
          onChange={(e) => change({ actor: e.target.value })}
          className={css.filter}
        >
          <option value="">Everyone</option>
          {[...people].map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        <Select
          aria-label="Outcome"
          value={typed.outcome}
          onChange={(e) => change({ outcome: e.target.value })}
          className={css.filter}
        >
          <option value="">All outcomes</option>
          {Object.entries(outcomes).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </Select>
        <div className={css.when}>
          <label className={css.date}>
            From <Input type="date" value={typed.from} onChange={(e) => change({ from: e.target.value })} />
          </label>
          <label className={css.date}>
            to <Input type="date" value={typed.to} onChange={(e) => change({ to: e.target.value })} />
          </label>
          <Button disabled={rows.length === 0} busy={saving} onClick={() => void save()}>
            <Download aria-hidden="true" />
            Export
          </Button>
        </div>
      </div>
      <Card flush>
        {pages.isLoadingError ? (
          <Failure error={pages.error} />
        ) : pages.isPending || (rows.length === 0 && hasNextPage) ? (
          <div style={{ padding: 16 }}>
            <Skeleton lines={6} />
          </div>
        ) : rows.length === 0 ? (
          <Empty icon={<ScrollText aria-hidden="true" />} title="No matches">
            Try other filters.
          </Empty>
        ) : (
          <VirtualRows
            label="Audit trail"
            items={rows}
            size={54}
            max={760}
            keyOf={keyOf}
            onEnd={() => {
              if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
            }}
            render={(r) => <Row record={r} people={people} />}
          />
        )}
      </Card>
    </div>
  );
}

function Row({ record: r, people }: { record: AuditRecord; people: Map<string, string> }) {
  const { workspace } = useSession();
  const phrase = phraseOf(r.action);
  const elsewhere = r.workspace && r.workspace !== workspace.id && `in ${r.workspace}`;
  return (
    <div className={`${css.row} ${css.record}`}>
      <time dateTime={r.time}>{moment(r.time)}</time>
      <Badge tone={toneOf(r.outcome)} dot>
        {r.outcome.replaceAll("_", " ")}
      </Badge>
      <p title={[r.action, r.requestId && `request ${r.requestId}`].filter(Boolean).join(", ")}>
        <b>{r.actor ? (people.get(r.actor) ?? r.actor) : "Someone not logged in"}</b>{" "}
        {phrase ?? <code>{r.action}</code>}
        {r.target === dryRun && (
          <>
            {" "}
            <Badge title="Nothing was changed">dry run</Badge>
          </>
        )}
        {r.target && r.target !== dryRun && (phrase !== null || !r.action.includes(r.target)) && (
          <>
            {" "}
            <code>{people.get(r.target) ?? r.target}</code>
          </>
        )}
        <small>
          {[
            r.durationMs !== undefined && `took ${millis(r.durationMs)}`,
            r.address && `from ${r.address}`,
            elsewhere,
            r.reason,
          ]
            .filter(Boolean)
            .join(" · ")}
        </small>
      </p>
      {r.arguments !== undefined && (
        <details className={css.arguments}>
          <summary>
            <code>{typeof r.arguments === "string" ? r.arguments : toJson(r.arguments)}</code>
          </summary>
          {typeof r.arguments === "object" && <Code label="Arguments" text={toJson(r.arguments, 2)} wrap />}
        </details>
      )}
    </div>
  );
}

function toneOf(outcome: string): Tone {
  if (outcome === "ok" || outcome === "allowed") return "good";
  return outcome === "begun" || outcome === "approval_pending" ? "warn" : "bad";
}

/** Returns the filter once the person has stopped typing for a moment. */
function useSettled(typed: AuditFilter): AuditFilter {
  const [settled, setSettled] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(typed), 250);
    return () => clearTimeout(timer);
  }, [typed]);
  return useDeferredValue(settled);
}
