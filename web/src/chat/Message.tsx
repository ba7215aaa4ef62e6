import clsx from "clsx";
import { GitFork, Pencil, RotateCcw } from "lucide-react";
import { lazy, memo, Suspense, useState } from "react";
import type { Message, ToolCall } from "../api/client";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Textarea } from "../ui/Field";
import { cost, millis, moment, plural, short } from "../ui/format";
import { Badge, Failure } from "../ui/Surface";
import { Question } from "./Question";
import type { Part, RunState } from "./run";
import { ToolCard } from "./ToolCard";
import css from "./chat.module.css";

/** Loaded with the first answer: a chat without one can be used before. */
const Markdown = lazy(async () => ({ default: (await import("../ui/Markdown")).Markdown }));

export interface MessageActions {
  onEdit: (index: number, text: string) => void;
  onRetry: (index: number) => void;
  onFork: (index: number) => void;
  onMessage: (text: string) => void;
}

interface StoredAttachment {
  name?: string;
  mimeType?: string;
}

/** What the person said. */
export function UserMessage({ text, index, attachments, actions }: { text: string; index?: number; attachments?: StoredAttachment[]; actions?: MessageActions }) {
  const [edited, setEdited] = useState<string | null>(null);
  if (edited !== null && actions && index !== undefined) {
    return (
      <form style={{ display: "grid", gap: 8 }} onSubmit={(e) => { e.preventDefault(); setEdited(null); actions.onEdit(index, edited); }}>
        <Textarea aria-label="Edit the message" rows={4} value={edited} autoFocus onChange={(e) => setEdited(e.target.value)} />
        <div className={css.row}>
          <Button type="submit" look="primary" small disabled={!edited.trim()}>Send in a new branch</Button>
          <Button small onClick={() => setEdited(null)}>Cancel</Button>
        </div>
      </form>
    );
  }
  return (
    <div className={css.user}>
      {attachments && attachments.length > 0 && <div className={css.row}>{attachments.map((a, i) => <Badge key={i}>{a.name ?? a.mimeType}</Badge>)}</div>}
      <div className={css.bubble}>{text}</div>
      {actions && index !== undefined && (
        <span className={css.acts}>
          <CopyButton text={text} />
          <Button look="quiet" small label="Edit" onClick={() => setEdited(text)}><Pencil aria-hidden="true" /></Button>
        </span>
      )}
    </div>
  );
}

const partOf = (call: ToolCall): Part => ({
  type: "tool", id: call.id, name: call.name, input: call.input as Record<string, unknown>, state: call.ok ? "ok" : "failed", ms: call.ms, output: call.output, resourceUri: call.resourceUri,
});

/** What is stored of an answer, in the order in which it came; all calls first where the order is not known. */
function partsOf(message: Message): Part[] {
  const calls = (message.metadata?.toolCalls ?? []).map(partOf);
  const text = (text: string): Part => ({ type: "text", text });
  const parts = message.metadata?.parts;
  if (!parts) return message.content ? [...calls, text(message.content)] : calls;
  return parts.flatMap(({ type, text: said, index }) => (type === "text" ? [text(said ?? "")] : (calls[index ?? -1] ?? [])));
}

const PartView = memo(function PartView({ part, onMessage }: { part: Part; onMessage?: (text: string) => void }) {
  switch (part.type) {
    case "text": return <Suspense fallback={<p className={css.raw}>{part.text}</p>}><Markdown text={part.text} /></Suspense>;
    case "tool": return <ToolCard call={part} onMessage={onMessage} />;
    case "question": return <Question question={part} />;
  }
});

interface AnswerProps {
  /** What the history has of it. */
  message?: Message;
  index?: number;
  /** Its run, until the history has all of it. */
  state?: RunState;
  actions: MessageActions;
  onRetry?: () => void;
}

/**
 * What the model said in one run: as it goes on, and from the history. It is one component, so that what is
 * shown stays when the run has ended.
 */
export const Answer = memo(function Answer({ message, index = 0, state, actions, onRetry }: AnswerProps) {
  const parts = message ? partsOf(message) : (state?.parts ?? []);
  const last = parts.at(-1);
  const running = !message && state?.status === "running";
  const waiting = running && (last === undefined || (last.type === "tool" && last.state !== "running"));
  let texts = 0;
  return (
    <article className={clsx(css.assistant, running && css.live)} aria-label="Answer" aria-busy={running ? true : undefined}>
      {parts.map((part) => <PartView key={part.type === "text" ? `text ${texts++}` : part.id} part={part} onMessage={actions.onMessage} />)}
      {waiting && <span className={css.thinking} role="status" aria-label="Thinking"><i /><i /><i /></span>}
      {state?.status === "failed" && <Failure error={state.error} action={<Button small onClick={onRetry}>Retry</Button>} />}
      {!message && state?.status === "stopped" && <div className={css.meta}><Badge tone="warn">stopped</Badge></div>}
      {message && <About message={message} index={index} actions={actions} />}
    </article>
  );
});

/** What an answer cost and what can be done with it. */
function About({ message, index, actions }: { message: Message; index: number; actions: MessageActions }) {
  const m = message.metadata ?? {};
  return (
    <div className={css.meta}>
      {m.skill && <Badge tone="accent">skill {m.skill}</Badge>}
      {m.stopReason && <Badge tone="warn">{m.stopReason === "cancelled" ? "stopped" : "token budget reached"}</Badge>}
      {m.model && <span title={moment(message.timestamp)}>{m.model}</span>}
      {m.outputTokens !== undefined && <span title="Tokens read and written">{short(m.inputTokens ?? 0)} → {short(m.outputTokens)} tokens</span>}
      {m.costUsd != null && <span>{cost(m.costUsd)}</span>}
      {m.llmMs !== undefined && <span>{millis(m.llmMs)}</span>}
      {(m.iterations ?? 0) > 1 && <span>{plural(m.iterations!, "turn")}</span>}
      <span className={css.acts}>
        <CopyButton text={message.content} />
        <Button look="quiet" small label="Retry" onClick={() => actions.onRetry(index)}><RotateCcw aria-hidden="true" /></Button>
        <Button look="quiet" small label="Fork from here" onClick={() => actions.onFork(index + 1)}><GitFork aria-hidden="true" /></Button>
      </span>
    </div>
  );
}
