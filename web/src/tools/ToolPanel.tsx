import { Link } from "@tanstack/react-router";
import { ExternalLink, Play, Square } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useLinking, useOwnAccounts } from "../accounts/data";
import { WaitingCall } from "../approvals/Decide";
import { isPending, useApprovals } from "../approvals/waiting";
import { usePermissions } from "../api/apps";
import { toJson } from "../api/digits";
import { ApiError } from "../api/http";
import { useSession } from "../api/session";
import { callTool, titleOf, viewOf, type Tool } from "../api/tools";
import type { ToolResult } from "../api/client";
import { initial, kindOf, problemsOf } from "../forms/schema";
import { SchemaForm } from "../forms/SchemaForm";
import { Button } from "../ui/Button";
import { Field, Select } from "../ui/Field";
import { count, millis, tokens } from "../ui/format";
import { Badge, Card, Failure, Notice } from "../ui/Surface";
import { AppView } from "../views/LazyAppView";
import { ResultView } from "./ResultView";
import css from "./tools.module.css";

/** Estimates the number of tokens in a tool's definition. */
export const price = (tool: Tool) =>
  tokens(toJson({ name: tool.name, description: tool.description, inputSchema: tool.inputSchema }));

interface Outcome {
  args: Record<string, unknown>;
  result?: ToolResult;
  error?: unknown;
  ms: number;
}

/** Shows a tool's description and a form to try it. */
export function ToolPanel({ tool }: { tool: Tool }) {
  const schema = tool.inputSchema ?? {};
  const [value, setValue] = useState(() => (initial(schema) ?? {}) as Record<string, unknown>);
  const [errors, setErrors] = useState(new Map<string, string>());
  const [running, setRunning] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const abort = useRef<AbortController | null>(null);
  const { isWorkspaceAdmin } = useSession();
  const accounts = useOwnAccounts(tool.server);
  const [account, setAccount] = useState("");

  const run = async () => {
    const gaps = problemsOf(schema, value);
    setErrors(gaps);
    if (gaps.size > 0) return;
    setRunning(true);
    setOutcome(null);
    abort.current = new AbortController();
    const began = performance.now();
    try {
      const result = await callTool(tool.name, value, abort.current.signal, account);
      setOutcome({ args: value, result, ms: performance.now() - began });
    } catch (error) {
      if (!abort.current.signal.aborted) {
        setErrors(refused(error));
        setOutcome({ args: value, error, ms: performance.now() - began });
      }
    } finally {
      setRunning(false);
    }
  };

  const view = viewOf(tool);
  const empty = Object.keys(schema.properties ?? {}).length === 0 && ["json", "object"].includes(kindOf(schema));
  return (
    <div className={css.panel}>
      <Card title={titleOf(tool)} actions={<ToolBadges tool={tool} />}>
        {tool.description && (
          <p className={css.about} tabIndex={0} role="group" aria-label="Description">
            {tool.description}
          </p>
        )}
        <form
          style={{ display: "grid", gap: 16 }}
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            void run();
          }}
        >
          {empty ? (
            <p className={css.about}>This tool takes no arguments.</p>
          ) : (
            <SchemaForm schema={schema} value={value} onChange={setValue} errors={errors} json />
          )}
          {accounts.length > 1 && (
            <Field label="Account" hint={`You have several accounts at ${tool.server}.`}>
              {(props) => (
                <Select {...props} value={account} onChange={(e) => setAccount(e.target.value)}>
                  <option value="">{tool.annotations?.readOnlyHint ? "The default account" : "Choose…"}</option>
                  {accounts.map((a) => (
                    <option key={a.id}>{a.name}</option>
                  ))}
                </Select>
              )}
            </Field>
          )}
          <div className={css.foot}>
            {running ? (
              <Button onClick={() => abort.current?.abort()}>
                <Square aria-hidden="true" />
                Stop
              </Button>
            ) : (
              <Button type="submit" look="primary">
                <Play aria-hidden="true" />
                Run tool
              </Button>
            )}
            <small>
              Runs as you, without a model.{" "}
              {isWorkspaceAdmin && (
                <Link to="/activity" search={{ tab: "audit", action: "tools.call", tool: tool.name }}>
                  Earlier calls
                </Link>
              )}
            </small>
          </div>
        </form>
      </Card>
      <div aria-live="polite" className={css.result}>
        {running && <Waiting tool={tool.name} sent={value} account={account} />}
        {outcome?.error !== undefined &&
          (loginOf(outcome.error) ? (
            <LoginNeeded login={loginOf(outcome.error)!} onLinked={() => void run()} />
          ) : (
            <Failure error={outcome.error} />
          ))}
        {outcome?.result && (
          <Card
            title="Result"
            actions={
              <>
                <Badge tone={outcome.result.isError ? "bad" : "good"} dot>
                  {outcome.result.isError ? "error" : "ok"}
                </Badge>
                <Badge>{millis(outcome.ms)}</Badge>
              </>
            }
          >
            {view && !outcome.result.isError && (
              <AppView server={tool.server} uri={view} tool={tool} input={outcome.args} result={outcome.result} />
            )}
            {outcome.result.isError && isWorkspaceAdmin && <Denied app={tool.server} />}
            <ResultView result={outcome.result} />
          </Card>
        )}
      </div>
    </div>
  );
}

/** Says what the sandbox denied the app, which may be why a call failed. */
function Denied({ app }: { app: string }) {
  const { data } = usePermissions(app);
  const denied = data?.denials.filter((d) => d.observed).map((d) => d.target) ?? [];
  return (
    denied.length > 0 && (
      <Notice
        tone="warn"
        action={
          <Link to="/apps/$name" params={{ name: app }} search={{ tab: "permissions" }}>
            Permissions
          </Link>
        }
      >
        {`The sandbox has denied ${app} access to ${denied.join(", ")}. If the tool needs it, allow it on the app's page.`}
      </Notice>
    )
  );
}

/** Shows the decision that this call is waiting for, if any. The person may have other waiting calls to the same tool. */
function Waiting({ tool, sent, account }: { tool: string; sent: Record<string, unknown>; account: string }) {
  const { user } = useSession();
  const { data = [] } = useApprovals({ every: 3_000 });
  const approval = data.find(
    (a) =>
      isPending(a) &&
      a.tool === tool &&
      a.caller.id === user.id &&
      (account === "" || a.account === account) &&
      toJson(a.arguments) === toJson(sent),
  );
  return (
    approval && (
      <Card title="Waiting for approval">
        <WaitingCall approval={approval}>This call needs a decision</WaitingCall>
      </Card>
    )
  );
}

interface Login {
  app: string;
  account: string;
  url: string;
}

/** Returns the login that a call needs, or undefined for other errors. */
const loginOf = (error: unknown) =>
  error instanceof ApiError && error.code === "login_needed" ? (error.details as Login) : undefined;

/** Asks the person to link the account that a call needs, and retries the call once the account is linked. */
function LoginNeeded({ login, onLinked }: { login: Login; onLinked: () => void }) {
  const { page, open } = useLinking(login.app, login.account, onLinked);
  return (
    <Notice
      tone="warn"
      action={
        <Button look={page ? "plain" : "primary"} onClick={() => open(login.url)}>
          <ExternalLink aria-hidden="true" />
          {page ? "Open the page again" : "Link an account"}
        </Button>
      }
    >
      {page
        ? "The call continues once the account is linked."
        : `The app ${login.app} needs a login with the account ${login.account}.`}
    </Notice>
  );
}

function ToolBadges({ tool }: { tool: Tool }) {
  const cost = useMemo(() => price(tool), [tool]);
  const hints = tool.annotations ?? {};
  return (
    <span className={css.badges}>
      {hints.readOnlyHint && <Badge tone="good">read only</Badge>}
      {hints.destructiveHint && !hints.readOnlyHint && <Badge tone="warn">destructive</Badge>}
      {viewOf(tool) && <Badge tone="accent">view</Badge>}
      <Badge title="The number of tokens that the definition costs a model, at about four characters per token">
        ≈ {count(cost)} tokens
      </Badge>
      <Badge title="The name that models and clients use">
        <code>{tool.tool}</code>
      </Badge>
    </span>
  );
}

/** Returns the problems that the server found in the arguments, by JSON pointer. */
function refused(error: unknown): Map<string, string> {
  const details =
    error instanceof ApiError
      ? (error.details as { errors?: { path: string; message: string }[] } | undefined)
      : undefined;
  return new Map((details?.errors ?? []).map((e) => [e.path, e.message]));
}
