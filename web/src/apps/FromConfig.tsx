import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import { Button } from "../ui/Button";
import { Field, Textarea } from "../ui/Field";
import { Code } from "../ui/Code";
import { Badge, Failure } from "../ui/Surface";
import { toast } from "../ui/Toast";
import css from "./apps.module.css";

const example = `{
  "mcpServers": {
    "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] }
  }
}`;

interface Entry {
  name?: string;
  key?: string;
  status?: string;
  error?: string;
  message?: string;
  missing?: unknown;
  source?: unknown;
}

interface Outcome {
  apps?: Entry[];
  results?: Entry[];
  servers?: Entry[];
}

/** The mcpServers of another client: shown first, installed then. */
export function FromConfig({ onDone }: { onDone: () => void }) {
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const [plan, setPlan] = useState<Outcome | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (dryRun: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const body = { mcpServers: parsed.mcpServers ?? parsed.servers ?? parsed, dryRun };
      const outcome = await request<Outcome>("POST", "/v1/apps/import", { body, query: { dryRun } });
      if (dryRun) return setPlan(outcome);
      for (const key of ["apps", "tools", "health"]) void queries.invalidateQueries({ queryKey: [key] });
      toast("The servers are imported.");
      onDone();
    } catch (problem) {
      setError(problem instanceof SyntaxError ? `This is not JSON: ${problem.message}` : problem);
    } finally {
      setBusy(false);
    }
  };
  const entries = plan?.apps ?? plan?.results ?? plan?.servers;
  return (
    <form style={{ display: "grid", gap: 16 }} onSubmit={(e) => { e.preventDefault(); void send(plan === null); }}>
      <Field label="Configuration of another client" required hint="The mcpServers object of Claude Desktop, Cursor, VS Code and others. Nothing is installed before you have seen the plan.">
        {(props) => <Textarea {...props} mono rows={9} spellCheck={false} value={text} placeholder={example} onChange={(e) => { setText(e.target.value); setPlan(null); }} />}
      </Field>
      {entries && (
        <ul className={css.found}>
          {entries.map((entry, i) => (
            <li key={entry.name ?? entry.key ?? i} className={css.foundRow}>
              <div><b>{entry.name ?? entry.key}</b><small>{entry.message ?? entry.error ?? describe(entry.source)}</small></div>
              {entry.error ? <Badge tone="bad">{entry.error}</Badge> : <Badge tone="good">{entry.status ?? "ready"}</Badge>}
            </li>
          ))}
        </ul>
      )}
      {plan && !entries && <Code label="Plan" text={JSON.stringify(plan, null, 2)} />}
      {error !== null && <Failure error={error} />}
      <div><Button type="submit" look="primary" busy={busy} disabled={text.trim() === ""}>{plan ? "Install these" : "Show the plan"}</Button></div>
    </form>
  );
}

const describe = (source: unknown) => (source === undefined ? "" : typeof source === "string" ? source : JSON.stringify(source));
