import { useMemo, type ReactNode } from "react";
import type { AppDetails, Health } from "../api/apps";
import type { App } from "../api/client";
import { useSession } from "../api/session";
import type { Tool } from "../api/tools";
import { price } from "../tools/ToolPanel";
import { Calls } from "./Calls";
import { statusOf } from "./state";
import { bytes, count, duration, moment, plural, sentence } from "../ui/format";
import { Code } from "../ui/Code";
import { Card, Facts, Notice } from "../ui/Surface";

interface Props {
  app: App;
  details?: AppDetails;
  health?: Health;
  tools: Tool[];
}

/** Shows the state of an app. */
export function Overview({ app, details, health, tools }: Props) {
  const { isWorkspaceAdmin } = useSession();
  const cost = useMemo(() => tools.reduce((sum, t) => sum + price(t), 0), [tools]);
  const error = details?.lastError;
  const facts: [string, ReactNode][] = [
    ["State", app.asleep ? "asleep: its processes start on the next call" : statusOf(app)],
    ["Running for", app.status === "running" && health ? duration(health.uptime) : "–"],
    ["Restarts after crashes", count(details?.restarts ?? health?.restartCount ?? 0)],
    ["Memory", typeof details?.memoryBytes === "number" ? bytes(details.memoryBytes) : "–"],
    ["Tools", plural(app.toolCount, "tool")],
    ["Size of the tool definitions", tools.length > 0 ? `≈ ${count(cost)} tokens` : "–"],
    ["Trust score", app.trustScore > 0 ? `${app.trustScore} of 100` : "not rated"],
  ];
  if (details?.since) facts.push(["Since", moment(details.since)]);
  if (app.sandbox)
    facts.push(
      [
        "Sandbox",
        `${app.sandbox.level}${app.sandbox.ownUser ? ", own user" : ""}${app.sandbox.weaker ? ` (${app.sandbox.weaker})` : ""}`,
      ],
      ["Network", app.sandbox.network.join(", ") || "none"],
    );
  if (details?.source) facts.push(["Source", sourceOf(details.source)]);
  if (details?.signature)
    facts.push([
      "Signed by",
      `${details.signature.signer}${details.signature.trusted ? "" : " (not among the trusted signers)"}`,
    ]);
  if (details?.protected) facts.push(["Protected", "cannot be uninstalled in the console"]);
  return (
    <div style={{ display: "grid", gap: 20 }}>
      {error && (
        <Notice tone="bad">
          <p>{sentence(error)}</p>
          {details.lastOutput && details.lastOutput.length > 0 && (
            <Code label="The app's last output" text={details.lastOutput.join("\n")} />
          )}
        </Notice>
      )}
      {(details?.refusedTools ?? []).map(({ name, model, reason }) => (
        <Notice key={`${name} ${model}`} tone="warn">
          <p>
            <code>{name}</code> is not available to {model} because the provider refuses the tool’s definition
            {reason ? `: ${reason}` : "."}
          </p>
        </Notice>
      ))}
      {app.status === "dead" && (
        <Notice tone="bad">
          {error
            ? "The app will not be restarted automatically."
            : "The app crashed too often and will not be restarted automatically. Its log may show why. Fix the cause and start the app again."}
        </Notice>
      )}
      <Card>
        <Facts facts={facts} />
      </Card>
      {isWorkspaceAdmin && <Calls app={app.name} />}
    </div>
  );
}

const sourceOf = ({ kind, ref, registry }: AppDetails["source"]) =>
  registry ? `${ref} from ${registry}` : `${kind}: ${ref}`;
