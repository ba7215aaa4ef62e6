import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { useHealth } from "../api/apps";
import { api, take, type Skill } from "../api/client";
import { useSession } from "../api/session";
import { system } from "../api/tools";
import { Button } from "../ui/Button";
import { bytes, count, duration, plural } from "../ui/format";
import { Badge, Card, Empty, Facts, Failure, NotAllowed, Page, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { parseMetrics, type Sample } from "./metrics";
import { Models } from "./Models";

/** Shows organization admins the state of the server. */
export function SystemScreen() {
  const { isOrgAdmin } = useSession();
  return isOrgAdmin ? <State /> : <NotAllowed title="System" who="organization admins" />;
}

function State() {
  const { facts } = useSession();
  const health = useQuery({
    queryKey: ["server"],
    refetchInterval: 10_000,
    queryFn: () => take(api.GET("/v1/health")),
  });
  const status = useQuery({
    queryKey: ["status"],
    refetchInterval: 10_000,
    queryFn: () =>
      system<{ version: string; totalTools: number; apps: { total: number; byStatus: Record<string, number> } }>(
        "status",
        {},
      ),
  });
  const metrics = useQuery({
    queryKey: ["metrics"],
    refetchInterval: 10_000,
    queryFn: async () => parseMetrics(await take(api.GET("/v1/metrics", { parseAs: "text" }))),
  });
  const server: [string, ReactNode][] = [
    ["Version", status.data?.version ?? facts.version],
    ["Running for", health.data ? duration(health.data.uptime) : "–"],
    [
      "Authentication",
      facts.dev
        ? "off (dev mode)"
        : [facts.login && "identity provider", facts.apiKey && "API key"].filter(Boolean).join(" and "),
    ],
    [
      "Apps of this workspace",
      status.data
        ? Object.entries(status.data.apps.byStatus)
            .map(([state, n]) => `${n} ${state}`)
            .join(", ") || "none"
        : "–",
    ],
    ["Tools", status.data ? count(status.data.totalTools) : "–"],
    ["App views", facts.viewOrigin || "this origin, in a sandbox"],
  ];
  return (
    <Page title="System" about="The state of this server, its plugins and its configuration.">
      {health.error && <Failure error={health.error} />}
      <Card title="Server">
        <Facts facts={server} />
      </Card>
      <Models />
      <Plugins />
      <Bundles />
      {metrics.data && <Metrics samples={metrics.data} />}
      <Skills />
      <Configuration />
    </Page>
  );
}

const kinds: Record<string, string> = {
  auth: "Authentication",
  sessionstore: "Session store",
  registry: "Registry",
  audit: "Audit",
};

function Plugins() {
  const { data, error } = useQuery({
    queryKey: ["plugins"],
    refetchInterval: 10_000,
    queryFn: async () => (await take(api.GET("/v1/plugins"))).plugins,
  });
  if (error) return <Failure error={error} />;
  if (!data?.length) return null;
  type Plugin = (typeof data)[number];
  const state = (p: Plugin) =>
    p.state === "restarting" ? (
      <Badge tone="bad" dot>
        restarting
      </Badge>
    ) : p.degraded ? (
      <Badge tone="warn" dot>
        degraded
      </Badge>
    ) : (
      <Badge tone="good" dot>
        running
      </Badge>
    );
  return (
    <Card flush title="Adapters and plugins">
      <Table
        label="Adapters and plugins"
        rows={data}
        keyOf={(p) => `${p.kind}/${p.name}`}
        columns={[
          {
            title: "Adapter",
            cell: (p) => (
              <>
                <b>{p.name}</b>
                {p.adapter !== p.name && <> ({p.adapter})</>}
                <br />
                {kinds[p.kind] ?? p.kind}
              </>
            ),
          },
          {
            title: "State",
            cell: (p) => (
              <>
                {state(p)}
                {p.lastError && (
                  <>
                    <br />
                    {p.lastError}
                  </>
                )}
              </>
            ),
          },
          { title: "Version", cell: (p) => p.version || "–" },
          { title: "Started", number: true, cell: (p) => plural(p.generation, "time") },
          { title: "Up", number: true, cell: (p) => duration((Date.now() - Date.parse(p.since)) / 1000) },
          { title: "Calls", number: true, cell: (p) => count(p.calls) },
          { title: "Failed", number: true, cell: (p) => count(p.errors) },
        ]}
      />
    </Card>
  );
}

function Bundles() {
  const health = useHealth();
  const { data } = useQuery({ queryKey: ["server"], queryFn: () => take(api.GET("/v1/health")) });
  const rows = [...(health.data?.values() ?? [])];
  if (rows.length === 0) return null;
  const state = new Map(data?.bundles.map((b) => [b.name, b.state]));
  return (
    <Card flush title="App processes">
      <Table
        label="App processes"
        rows={rows.slice(0, 300)}
        keyOf={(r) => r.name}
        columns={[
          { title: "App", cell: (r) => r.name },
          {
            title: "State",
            cell: (r) => (
              <Badge tone={state.get(r.name) === "running" ? "good" : "plain"} dot>
                {state.get(r.name) ?? "–"}
              </Badge>
            ),
          },
          { title: "Up", number: true, cell: (r) => (r.uptime > 0 ? duration(r.uptime) : "–") },
          { title: "Restarts", number: true, cell: (r) => count(r.restartCount) },
        ]}
      />
    </Card>
  );
}

/** The metrics to show, with their titles and formats. */
const glance: [RegExp, string, (value: number) => string][] = [
  [/process_resident_memory_bytes|_memory_resident/, "Server memory", bytes],
  [/go_goroutines/, "Goroutines", count],
  [/_mcp_sessions|_sessions$/, "MCP sessions", count],
  [/_open_fds/, "Open files", count],
  [/_tool_calls_total|_tools_calls/, "Tool calls", count],
  [/_requests_total/, "Requests", count],
];

function Metrics({ samples }: { samples: Sample[] }) {
  const shown: [string, ReactNode][] = glance.flatMap(([pattern, name, read]) => {
    const found = samples.filter((s) => pattern.test(s.name));
    return found.length > 0 ? [[name, read(found.reduce((sum, s) => sum + s.value, 0))] as [string, ReactNode]] : [];
  });
  shown.push([
    "All metrics",
    <a key="all" href="/v1/metrics">
      {plural(new Set(samples.map((s) => s.name)).size, "metric")} at /v1/metrics
    </a>,
  ]);
  return (
    <Card title="Metrics at a glance">
      <Facts facts={shown} />
    </Card>
  );
}

function Skills() {
  const { workspace } = useSession();
  const skills = useQuery({
    queryKey: ["skills", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/skills"))).skills,
  });
  if (skills.isLoadingError) return <Failure error={skills.error} />;
  const how = (s: Skill) => (s.type === "context" ? "always" : [...s.triggers, ...s.keywords].slice(0, 6).join(", "));
  return (
    <Card flush title="Skills">
      {skills.isPending ? (
        <Skeleton />
      ) : skills.data.length === 0 ? (
        <Empty title="No skills">A skill is a Markdown file in the server's skills folder.</Empty>
      ) : (
        <Table
          label="Skills"
          rows={skills.data}
          keyOf={(s) => s.name}
          columns={[
            {
              title: "Skill",
              cell: (s) => (
                <>
                  <b>{s.name}</b>
                  <br />
                  {s.description}
                </>
              ),
            },
            { title: "Type", cell: (s) => <Badge>{s.type}</Badge> },
            { title: "Used when", cell: how },
          ]}
        />
      )}
    </Card>
  );
}

function Configuration() {
  const config = useQuery({ queryKey: ["config"], queryFn: async () => (await take(api.GET("/v1/config"))).settings });
  const [all, setAll] = useState(false);
  if (config.isLoadingError) return <Failure error={config.error} />;
  const rows = (config.data ?? []).filter((s) => all || s.source !== "default");
  return (
    <Card
      flush
      title="Configuration"
      actions={
        <Button small aria-pressed={all} onClick={() => setAll(!all)}>
          {all ? "Hide defaults" : "Show defaults"}
        </Button>
      }
    >
      {config.isPending ? (
        <Skeleton />
      ) : rows.length === 0 ? (
        <Empty title="Every setting has its default value">
          No setting has been changed in the file, by a flag or in the environment.
        </Empty>
      ) : (
        <Table
          label="Configuration"
          rows={rows}
          keyOf={(s) => s.path}
          columns={[
            { title: "Setting", cell: (s) => <code>{s.path}</code> },
            {
              title: "Value",
              cell: (s) => <code>{typeof s.value === "string" ? s.value : JSON.stringify(s.value)}</code>,
            },
            { title: "From", cell: (s) => s.source },
          ]}
        />
      )}
    </Card>
  );
}
