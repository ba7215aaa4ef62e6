import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, take, type Schemas } from "../api/client";
import { refresh } from "../api/refresh";
import { Button } from "../ui/Button";
import { Field, Input, Textarea } from "../ui/Field";
import { Badge, Failure, type Tone } from "../ui/Surface";
import { toast } from "../ui/Toast";
import css from "./apps.module.css";

const example = `{
  "mcpServers": {
    "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] }
  }
}`;

type Outcome = Schemas["ImportResult"];

const tones: Record<Outcome["servers"][number]["status"], Tone> = {
  planned: "info",
  installed: "good",
  replaced: "good",
  exists: "plain",
  disabled: "plain",
  failed: "bad",
};

/** Imports another client's configuration: shows a plan with fields for missing values, then installs it. */
export function FromConfig({ onDone }: { onDone: () => void }) {
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [installed, setInstalled] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (dryRun: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
      const body = { text, dryRun, values: given };
      const answer = await take(api.POST("/v1/apps/import", { body }));
      setOutcome(answer);
      if (dryRun) return;
      setInstalled(true);
      refresh(queries, ["apps", "tools", "health"]);
      if (answer.servers.some((s) => s.status === "failed")) return;
      toast("The servers were imported.");
      onDone();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const inputs = new Map((outcome?.servers ?? []).flatMap((s) => (s.inputs ?? []).map((i) => [i.name, i] as const)));
  return (
    <form
      style={{ display: "grid", gap: 16 }}
      onSubmit={(e) => {
        e.preventDefault();
        void send(outcome === null || installed);
      }}
    >
      <Field
        label="Configuration of another client"
        required
        hint="JSON, TOML or YAML of Claude Desktop, Cursor, VS Code, Codex and others. You see the plan before anything is installed."
      >
        {(props) => (
          <Textarea
            {...props}
            mono
            rows={9}
            spellCheck={false}
            value={text}
            placeholder={example}
            onChange={(e) => {
              setText(e.target.value);
              setOutcome(null);
              setInstalled(false);
            }}
          />
        )}
      </Field>
      {outcome && (
        <ul className={css.found}>
          {outcome.servers.map((s) => (
            <li key={s.name} className={css.foundRow}>
              <div>
                <b>{s.serverName || s.name}</b>
                <small>{s.message || [s.source, s.ref, s.version].filter(Boolean).join(" · ")}</small>
                {s.toolFilter?.include && <small>Only with the tools {s.toolFilter.include.join(", ")}</small>}
                {s.toolFilter?.exclude && <small>Without the tools {s.toolFilter.exclude.join(", ")}</small>}
                {s.left && <small>Not imported: {s.left.join(", ")}</small>}
              </div>
              <Badge tone={tones[s.status]}>{s.status}</Badge>
            </li>
          ))}
        </ul>
      )}
      {!installed &&
        [...inputs.values()].map((i) => (
          <Field key={i.name} label={i.name} hint={`For ${i.fields.join(", ")}.`}>
            {(props) => (
              <Input
                {...props}
                type={i.default ? "text" : "password"}
                autoComplete="off"
                placeholder={i.default}
                value={values[i.name] ?? ""}
                onChange={(e) => setValues({ ...values, [i.name]: e.target.value })}
              />
            )}
          </Field>
        ))}
      {error !== null && <Failure error={error} />}
      <div>
        <Button type="submit" look="primary" busy={busy} disabled={text.trim() === ""}>
          {outcome && !installed ? "Install these" : "Show the plan"}
        </Button>
      </div>
    </form>
  );
}
