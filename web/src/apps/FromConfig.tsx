import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, take, type Schemas } from "../api/client";
import { refresh } from "../api/refresh";
import { Button } from "../ui/Button";
import { Field, Input, Textarea } from "../ui/Field";
import { Badge, Failure, type Tone } from "../ui/Surface";
import { toast } from "../ui/Toast";
import { allAnswered, askedIn, decided, Questions, type Answers, type Asked, type Decisions } from "./Questions";
import css from "./apps.module.css";

const example = `{
  "mcpServers": {
    "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] }
  }
}`;

type Outcome = Schemas["ImportResult"];
type Server = Outcome["servers"][number];

/** Returns the permissions that a server asks for. They are known from the plan, or once its package has been downloaded. */
const askedOf = (s: Server): Asked[] =>
  (s.status === "planned" ? s.requests : s.error === "permissions_required" ? askedIn(s.details) : null) ?? [];

const tones: Record<Outcome["servers"][number]["status"], Tone> = {
  planned: "info",
  installed: "good",
  replaced: "good",
  exists: "plain",
  disabled: "plain",
  failed: "bad",
};

/** Imports the configuration of another client. It first shows a plan with fields for missing values, and then installs it. */
export function FromConfig({ onDone }: { onDone: () => void }) {
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [installed, setInstalled] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [answers, setAnswers] = useState<Record<string, Answers>>({});
  const [decisions, setDecisions] = useState<Record<string, Decisions>>({});
  const asking = (outcome?.servers ?? []).filter((s) => askedOf(s).length > 0);
  const ready = asking.every((s) => allAnswered(askedOf(s), answers[s.name] ?? {}));
  const send = async (dryRun: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
      const permissions = Object.fromEntries(
        (outcome?.servers ?? []).map((s) => [
          s.name,
          decided(decisions[s.name] ?? {}, askedOf(s), answers[s.name] ?? {}),
        ]),
      );
      const body = { text, dryRun, values: given, ...(!dryRun && { permissions }) };
      const answer = await take(api.POST("/v1/apps/import", { body }));
      if (dryRun) return setOutcome(answer);
      const before = new Map(outcome?.servers.map((s) => [s.name, s]));
      setOutcome({
        ...answer, // servers that an earlier round installed are now reported as existing
        servers: answer.servers.map((s) =>
          s.status === "exists" && before.get(s.name)?.status === "installed" ? before.get(s.name)! : s,
        ),
      });
      setDecisions(permissions);
      setAnswers({});
      refresh(queries, ["apps", "tools", "health"]);
      if (answer.servers.some((s) => askedOf(s).length > 0)) return;
      setInstalled(true);
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
        label="Another client's configuration"
        required
        hint="JSON, TOML or YAML from Claude Desktop, Cursor, VS Code, Codex and others, or an install link or command from a README. You will see the plan before anything is installed."
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
              setAnswers({});
              setDecisions({});
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
                {s.toolFilter?.include && <small>Only these tools: {s.toolFilter.include.join(", ")}</small>}
                {s.toolFilter?.exclude && <small>Without these tools: {s.toolFilter.exclude.join(", ")}</small>}
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
      {asking.map((s) => (
        <Questions
          key={s.name}
          app={s.serverName || s.name}
          asked={askedOf(s)}
          answers={answers[s.name] ?? {}}
          onAnswers={(given) => setAnswers({ ...answers, [s.name]: given })}
        />
      ))}
      {error !== null && <Failure error={error} />}
      <div>
        <Button type="submit" look="primary" busy={busy} disabled={text.trim() === "" || !ready}>
          {outcome && !installed ? "Install the servers" : "Show the plan"}
        </Button>
      </div>
    </form>
  );
}
