import { Download, ScrollText } from "lucide-react";
import { useDeferredValue, useEffect, useState } from "react";
import { ApiError } from "../api/http";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Input, Search, Select } from "../ui/Field";
import { moment } from "../ui/format";
import { Badge, Card, Empty, Failure, Skeleton, type Tone } from "../ui/Surface";
import { toastError } from "../ui/Toast";
import { VirtualRows } from "../ui/VirtualRows";
import { phraseOf } from "./actions";
import {
  everything,
  exportAudit,
  useAudit,
  usePeople,
  withoutBegun,
  type AuditFilter,
  type AuditRecord,
} from "./audit";
import { saveLines } from "./save";
import css from "./activity.module.css";

const outcomes = {
  ok: "Done",
  allowed: "Allowed calls",
  begun: "Begun",
  forbidden: "Refused for lack of a right",
  unauthenticated: "Refused for lack of a login",
  approval_pending: "Waits for an approval",
  approval_refused: "Approval refused",
  tool_not_found: "No such tool",
  login_needed: "Refused for lack of a login at the app",
};

/** Who did what, from the record. */
export function AuditTrail() {
  const [typed, setTyped] = useState(everything);
  const filter = useSettled(typed);
  const pages = useAudit(filter);
  const people = usePeople();
  const [saving, setSaving] = useState(false);
  const change = (part: Partial<AuditFilter>) => setTyped({ ...typed, ...part });
  const records = pages.data?.pages.flatMap((p) => p.records) ?? [];
  const rows = filter.outcome === "begun" ? records : withoutBegun(records);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  // A page may be empty and still be followed by another one.
  const few = rows.length < 50;
  useEffect(() => {
    if (few && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [few, hasNextPage, isFetchingNextPage, fetchNextPage, records.length, pages.data?.pages.length]);
  if (pages.error instanceof ApiError && pages.error.code === "not_configured") {
    return (
      <Card>
        <Empty icon={<ScrollText aria-hidden="true" />} title="Nothing is recorded">
          Set <code>audit.file</code> in <code>ropewalk.yaml</code> and start the server again: logins, changes and
          calls of tools are then recorded and shown here.
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
          <option value="">Everybody</option>
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
          <option value="">Every outcome</option>
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
          <Empty icon={<ScrollText aria-hidden="true" />} title="Nothing fits">
            Other filters may.
          </Empty>
        ) : (
          <VirtualRows
            label="Audit trail"
            items={rows}
            size={54}
            max={760}
            keyOf={(r) => `${r.time} ${r.requestId} ${r.action} ${r.target} ${r.outcome}`}
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
        <b>{r.actor ? (people.get(r.actor) ?? r.actor) : "Somebody without a login"}</b>{" "}
        {phrase ?? <code>{r.action}</code>}
        {r.target && (phrase !== null || !r.action.includes(r.target)) && (
          <>
            {" "}
            <code>{people.get(r.target) ?? r.target}</code>
          </>
        )}
        <small>{[r.address && `from ${r.address}`, elsewhere].filter(Boolean).join(" · ")}</small>
      </p>
    </div>
  );
}

function toneOf(outcome: string): Tone {
  if (outcome === "ok" || outcome === "allowed") return "good";
  return outcome === "begun" || outcome === "approval_pending" ? "warn" : "bad";
}

/** The filter once nobody types any more. */
function useSettled(typed: AuditFilter): AuditFilter {
  const [settled, setSettled] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(typed), 250);
    return () => clearTimeout(timer);
  }, [typed]);
  return useDeferredValue(settled);
}
