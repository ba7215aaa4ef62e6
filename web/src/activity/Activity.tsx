import { ActivityIcon, Download } from "lucide-react";
import { getRouteApi } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useConnection, useEvents, type WorkspaceEvent } from "../api/events";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Search, Select } from "../ui/Field";
import { clock, plural } from "../ui/format";
import { Badge, Card, Empty, Page } from "../ui/Surface";
import { Tabs } from "../ui/Tabs";
import { VirtualRows } from "../ui/VirtualRows";
import { AuditTrail, Earlier } from "./AuditTrail";
import { saveLines } from "../ui/save";
import { describe } from "./sentences";
import css from "./activity.module.css";

const route = getRouteApi("/activity");

/** Shows live events of the workspace, and its audit trail for admins. */
export function ActivityScreen() {
  const { isWorkspaceAdmin } = useSession();
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page title="Activity" about="Events in this workspace, as they happen.">
      {isWorkspaceAdmin ? (
        <Tabs
          label="Activity"
          value={tab === "audit" ? tab : "live"}
          onChange={(to) => void navigate({ search: { tab: to } })}
          tabs={[
            { id: "live", label: "Live", content: () => <Live /> },
            { id: "audit", label: "Audit trail", content: () => <AuditTrail /> },
          ]}
        />
      ) : (
        <Live />
      )}
    </Page>
  );
}

function Live() {
  const events = useEvents();
  const connection = useConnection();
  const { isWorkspaceAdmin } = useSession();
  const asked = route.useSearch();
  const navigate = route.useNavigate();
  const [query, setQuery] = useState(asked.search ?? "");
  const [kind, setKind] = useState(asked.kind ?? "");
  useEffect(() => {
    const to = { search: query || undefined, kind: kind || undefined };
    const timer = setTimeout(() => void navigate({ search: (before) => ({ ...before, ...to }), replace: true }), 250);
    return () => clearTimeout(timer);
  }, [query, kind, navigate]);
  const words = useDeferredValue(query).toLowerCase();
  const kinds = useMemo(
    () => [...new Set([...events.map((e) => e.name), kind])].filter(Boolean).sort(),
    [events, kind],
  );
  const shown = useMemo(
    () =>
      events
        .filter(
          (e) =>
            (!kind || e.name === kind) &&
            (!words || `${e.name} ${JSON.stringify(e.data)}`.toLowerCase().includes(words)),
        )
        .reverse(),
    [events, kind, words],
  );
  return (
    <div style={{ display: "grid", gap: 16 }}>
      <div className={css.bar}>
        <Search label="Search events" value={query} onChange={(e) => setQuery(e.target.value)} />
        <Select aria-label="Event type" value={kind} onChange={(e) => setKind(e.target.value)} style={{ width: 180 }}>
          <option value="">All events</option>
          {kinds.map((k) => (
            <option key={k}>{k}</option>
          ))}
        </Select>
        <Button
          disabled={shown.length === 0}
          onClick={() =>
            saveLines(
              "events.ndjson",
              shown.map(({ name, at, data }) => ({ time: at, event: name, ...data })),
            )
          }
        >
          <Download aria-hidden="true" />
          Export
        </Button>
        <Badge tone={connection === "open" ? "good" : "warn"} dot pulse={connection !== "open"}>
          {connection === "open" ? "live" : "connecting"}
        </Badge>
      </div>
      <Card flush>
        {shown.length === 0 ? (
          <Empty
            icon={<ActivityIcon aria-hidden="true" />}
            title={events.length > 0 ? "No matches" : "Nothing has happened yet"}
          >
            {events.length > 0
              ? "Try other words or another event type."
              : "Events appear here as they happen, for example when you start an app or a chat uses a tool."}
          </Empty>
        ) : (
          <VirtualRows
            label={`Events, ${plural(shown.length, "row")}`}
            items={shown}
            size={42}
            max={760}
            keyOf={(e) => e.seq}
            render={(e) => <Row event={e} />}
          />
        )}
      </Card>
      {isWorkspaceAdmin && <Earlier />}
    </div>
  );
}

function Row({ event }: { event: WorkspaceEvent }) {
  const { tone, sentence } = describe(event.name, event.data);
  return (
    <div className={css.row}>
      <time dateTime={event.at}>{clock(event.at)}</time>
      <Badge tone={tone} dot>
        {event.name}
      </Badge>
      <p>{sentence}</p>
    </div>
  );
}
