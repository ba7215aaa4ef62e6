import { ActivityIcon, Download } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { useConnection, useEvents, type WorkspaceEvent } from "../api/events";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Search, Select } from "../ui/Field";
import { clock, plural } from "../ui/format";
import { Badge, Card, Empty, Page } from "../ui/Surface";
import { Tabs } from "../ui/Tabs";
import { VirtualRows } from "../ui/VirtualRows";
import { AuditTrail } from "./AuditTrail";
import { saveLines } from "./save";
import { describe } from "./sentences";
import css from "./activity.module.css";

/** What happens in the workspace, as it happens, and what was recorded. */
export function ActivityScreen() {
  const { isWorkspaceAdmin } = useSession();
  const [tab, setTab] = useState("live");
  return (
    <Page title="Activity" about="What happens in this workspace, as it happens.">
      {isWorkspaceAdmin ? (
        <Tabs
          label="Activity"
          value={tab}
          onChange={setTab}
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
  const [query, setQuery] = useState("");
  const [kind, setKind] = useState("");
  const words = useDeferredValue(query).toLowerCase();
  const kinds = useMemo(() => [...new Set(events.map((e) => e.name))].sort(), [events]);
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
        <Select
          aria-label="Kind of event"
          value={kind}
          onChange={(e) => setKind(e.target.value)}
          style={{ width: 180 }}
        >
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
            title={events.length > 0 ? "Nothing fits" : "Nothing has happened yet"}
          >
            {events.length > 0
              ? "Other words or another kind may."
              : "Start an app or let a chat use a tool: it shows up here at once, from now on."}
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
