import { useQuery } from "@tanstack/react-query";
import { ChartNoAxesColumn } from "lucide-react";
import { useMemo, useState } from "react";
import { api, take, type UsageTotals } from "../api/client";
import { useSession } from "../api/session";
import { Select } from "../ui/Field";
import { cost, count, millis, plural, short } from "../ui/format";
import { Card, Empty, Failure, Page, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { Tabs } from "../ui/Tabs";
import { Chart, type Bar } from "./Chart";
import css from "./usage.module.css";

const periods = { day: "Today", week: "Last 7 days", month: "Last 30 days", all: "All time" };

type Period = keyof typeof periods;
type GroupBy = "day" | "model" | "user";

function useUsage(period: Period, groupBy: GroupBy) {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["usage", workspace.id, period, groupBy],
    queryFn: () => take(api.GET("/v1/usage", { params: { query: { period, groupBy } } })),
  });
}

/** Shows the usage of models and its cost. */
export function UsageScreen() {
  const { isWorkspaceAdmin } = useSession();
  const [period, setPeriod] = useState<Period>("month");
  const [tab, setTab] = useState("model");
  const days = useUsage(period, "day");
  return (
    <Page
      title="Usage"
      about={
        isWorkspaceAdmin
          ? "How much everyone has used models in this workspace, and the cost."
          : "How much you have used models in this workspace, and the cost."
      }
      actions={
        <Select
          aria-label="Period"
          value={period}
          onChange={(e) => setPeriod(e.target.value as Period)}
          style={{ width: 160 }}
        >
          {Object.entries(periods).map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
      }
    >
      {days.isLoadingError ? (
        <Failure error={days.error} />
      ) : days.isPending ? (
        <Skeleton lines={6} />
      ) : days.data.totals.llmCalls === 0 ? (
        <Card flush>
          <Empty icon={<ChartNoAxesColumn aria-hidden="true" />} title="No usage in this period">
            Chats appear here with their tokens and cost.
          </Empty>
        </Card>
      ) : (
        <>
          <Totals totals={days.data.totals} />
          <Card
            title="Tokens per day"
            actions={
              <span className={css.legend}>
                <span>
                  <i />
                  read
                </span>
                <span>
                  <i data-kind="out" />
                  written
                </span>
              </span>
            }
          >
            <Chart bars={barsOf(days.data)} />
          </Card>
          <Tabs
            label="Usage by"
            value={tab}
            onChange={setTab}
            tabs={[
              { id: "model", label: "By model", content: () => <Breakdown period={period} by="model" title="Model" /> },
              ...(isWorkspaceAdmin
                ? [
                    {
                      id: "user",
                      label: "By person",
                      content: () => <Breakdown period={period} by="user" title="Person" />,
                    },
                  ]
                : []),
              { id: "day", label: "By day", content: () => <Breakdown period={period} by="day" title="Day" /> },
            ]}
          />
        </>
      )}
    </Page>
  );
}

function Totals({ totals }: { totals: UsageTotals }) {
  const all: [string, string, string][] = [
    [
      "Cost",
      cost(totals.costUsd),
      totals.unpricedCalls ? `${plural(totals.unpricedCalls, "call")} without a known price` : "at list prices",
    ],
    ["Tokens read", short(totals.inputTokens), `${short(totals.cacheReadTokens)} more from caches`],
    ["Tokens written", short(totals.outputTokens), `${millis(totals.llmMs)} of model time`],
    ["Model calls", count(totals.llmCalls), `in ${plural(totals.conversations, "conversation")}`],
    ["Tool calls", count(totals.toolCalls), "made by models"],
  ];
  return (
    <dl className={css.totals}>
      {all.map(([name, value, note]) => (
        <div key={name} className={css.total}>
          <dt>{name}</dt>
          <dd>
            {value}
            <small>{note}</small>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Breakdown({ period, by, title }: { period: Period; by: GroupBy; title: string }) {
  const usage = useUsage(period, by);
  const rows = useMemo(
    () =>
      (usage.data?.breakdown ?? []).toSorted((a, b) =>
        by === "day" ? b.key.localeCompare(a.key) : b.inputTokens + b.outputTokens - a.inputTokens - a.outputTokens,
      ),
    [usage.data, by],
  );
  if (usage.isLoadingError) return <Failure error={usage.error} />;
  if (usage.isPending) return <Skeleton lines={4} />;
  const most = Math.max(1, ...rows.map((r) => r.inputTokens + r.outputTokens));
  return (
    <Card flush>
      <Table
        label={`Usage by ${title.toLowerCase()}`}
        rows={rows}
        keyOf={(r) => r.key}
        columns={[
          { title, cell: (r) => r.label || r.key || "–" },
          {
            title: "Share",
            cell: (r) => (
              <div className={css.meter} aria-hidden="true">
                <span style={{ width: `${(100 * (r.inputTokens + r.outputTokens)) / most}%` }} />
              </div>
            ),
          },
          { title: "Read", number: true, cell: (r) => count(r.inputTokens) },
          { title: "Written", number: true, cell: (r) => count(r.outputTokens) },
          { title: "Calls", number: true, cell: (r) => count(r.llmCalls) },
          { title: "Cost", number: true, cell: (r) => cost(r.costUsd) },
        ]}
      />
    </Card>
  );
}

const day = 86_400_000;
const mostBars = 400;

/** Returns a bar for every day of the period, including days without usage. For a long period, it returns the last 400 days. */
function barsOf({ period, breakdown }: NonNullable<ReturnType<typeof useUsage>["data"]>): Bar[] {
  const known = new Map(breakdown.map((row) => [row.key, row]));
  const days: Bar[] = [];
  const first = [...known.keys()].sort()[0];
  const named = Date.parse(period.from.slice(0, 10));
  const to = Date.parse(period.to);
  const from = named > 0 || !first ? named : Date.parse(first); // "all time" starts with the first usage
  const last = Date.parse(period.to.slice(0, 10));
  for (let at = Math.max(from, last - (mostBars - 1) * day); at <= to; at += day) {
    const label = new Date(at).toISOString().slice(0, 10);
    const row = known.get(label);
    days.push({ label, input: row?.inputTokens ?? 0, output: row?.outputTokens ?? 0 });
  }
  return days;
}
