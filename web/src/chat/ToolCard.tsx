import { ChevronRight, CircleAlert, CircleCheck, LoaderCircle } from "lucide-react";
import { parseJson, toJson } from "../api/digits";
import { useTools, viewOf } from "../api/tools";
import type { ToolResult } from "../api/client";
import { ResultView } from "../tools/ResultView";
import { Code } from "../ui/Code";
import { millis } from "../ui/format";
import { WaitingCall } from "../approvals/Decide";
import { isPending, useApprovals, type Approval } from "../approvals/waiting";
import { Picture } from "../ui/Picture";
import { Spinner } from "../ui/Spinner";
import { AppView } from "../views/LazyAppView";
import type { ToolPart } from "./run";
import css from "./chat.module.css";

interface Props {
  call: ToolPart;
  /** Receives a message for the chat that the tool's view has written. */
  onMessage?: (text: string) => void;
}

/** Shows a tool call with its arguments, result and duration. */
export function ToolCard({ call, onMessage }: Props) {
  const { data: tools } = useTools();
  const called = nameOf(call);
  const tool = tools?.find((t) => t.name === call.name || t.name === called.name);
  const cut = called.name.indexOf("__");
  const server = tool?.server ?? called.name.slice(0, Math.max(0, cut));
  const uri = call.resourceUri ?? (tool && viewOf(tool));
  const Icon = { running: LoaderCircle, ok: CircleCheck, failed: CircleAlert }[call.state];
  const args = Object.keys(call.input ?? {}).length > 0 ? toJson(call.input) : "";
  const pictures = ((call.result?.content ?? []) as { type: string; data?: string; mimeType?: string }[]).filter(
    (part) => part.type === "image" && part.data,
  );
  return (
    <>
      <details className={css.tool}>
        <summary>
          <span className="visually-hidden">Tool call, {call.state}: </span>
          {call.state === "running" ? <Spinner /> : <Icon aria-hidden="true" className={css[call.state]} />}
          <b>{tool?.title ?? tool?.annotations?.title ?? tool?.tool ?? called.name.slice(cut < 0 ? 0 : cut + 2)}</b>
          <small>
            {server}
            {called.account && ` as ${called.account}`}
            {args && ` ${args}`}
          </small>
          {call.ms !== undefined && <time>{millis(call.ms)}</time>}
          <ChevronRight aria-hidden="true" className={css.chevron} />
        </summary>
        <div className={css.toolBody}>
          <div>
            <p className={css.caption}>Arguments</p>
            <Code label="Arguments" text={toJson(call.input ?? {}, 2)} wrap />
          </div>
          {(call.result ?? call.output) !== undefined && (
            <div>
              <p className={css.caption}>{call.state === "failed" ? "Error" : "Result"}</p>
              <ResultView
                result={
                  (call.result ?? { content: [{ type: "text", text: call.output ?? "" }] }) as unknown as ToolResult
                }
              />
            </div>
          )}
        </div>
      </details>
      {call.state !== "ok" && <Held call={call} />}
      {call.state === "running" && call.progress && <Progress {...call.progress} />}
      {pictures.map((p, i) => (
        <Picture
          key={i}
          className={css.picture}
          src={`data:${p.mimeType ?? "image/png"};base64,${p.data}`}
          name={`Picture from ${server}`}
        />
      ))}
      {uri && call.state === "ok" && (
        <AppView
          server={server}
          uri={uri}
          tool={tool}
          input={call.input}
          result={resultOf(call)}
          onMessage={onMessage}
        />
      )}
    </>
  );
}

/** Returns the tool and account of a call. A name such as github_work__create_issue contains both, because names of apps have no underscore. */
function nameOf({ name, account }: ToolPart): { name: string; account?: string } {
  const named = /^([^_]+)_([a-z0-9-]+)(__.+)$/.exec(name);
  return named ? { name: named[1]! + named[3]!, account: account ?? named[2] } : { name, account };
}

/** Returns the result for the view. Calls from older versions only have its text. */
function resultOf(call: ToolPart): ToolResult {
  if (call.result) return call.result as unknown as ToolResult;
  let structured: unknown;
  try {
    const parsed: unknown = parseJson(call.output ?? "");
    if (parsed && typeof parsed === "object" && !Array.isArray(parsed)) structured = parsed;
  } catch {
    structured = undefined;
  }
  return {
    content: [{ type: "text", text: call.output ?? "" }],
    ...(structured !== undefined && { structuredContent: structured }),
    isError: false,
    result: call.output,
  } as unknown as ToolResult;
}

/** Shows the decision on a waiting call. The decision may also come after the call has returned. */
function Held({ call }: { call: ToolPart }) {
  const waits = call.state === "running";
  const id = /\((apr_\w+)\)/.exec((waits ? call.progress?.message : call.output) ?? "")?.[1];
  const { data = [] } = useApprovals({ enabled: id !== undefined, recent: true });
  const approval = data.find((a) => a.id === id);
  if (!approval) return null;
  if (!isPending(approval)) {
    if (waits || !late[approval.state]) return null;
    return (
      <p role="status" className={css.meta}>
        {late[approval.state]}
        {approval.reason && ` Reason: ${approval.reason}`}
      </p>
    );
  }
  return (
    <section className={css.question} aria-label={`Decision on ${approval.tool}`}>
      <WaitingCall approval={approval}>
        {waits ? "This call is waiting for a decision" : "Nobody has decided on this call yet"}
      </WaitingCall>
    </section>
  );
}

/** The meaning of a decision that came after the call had returned. */
const late: Partial<Record<Approval["state"], string>> = {
  approved: "This call is now allowed. Ask the model to try it again.",
  used: "This call was allowed later, and made on a second attempt.",
  refused: "This call was refused later.",
};

function Progress({ progress, total, message }: NonNullable<ToolPart["progress"]>) {
  return (
    <div role="status">
      {total !== undefined && total > 0 && (
        <div className={css.bar}>
          <span style={{ width: `${Math.min(100, (100 * progress) / total)}%` }} />
        </div>
      )}
      <div className={css.meta}>
        {message?.replace(/ \(apr_\w+\)$/, "") ?? (total ? `${progress} of ${total}` : `${progress}`)}
      </div>
    </div>
  );
}
