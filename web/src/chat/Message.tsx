import { GitFork, Pencil, RotateCcw } from "lucide-react";
import { memo, useState } from "react";
import type { Message, ToolCall } from "../api/client";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Textarea } from "../ui/Field";
import { cost, millis, moment, plural, short } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import { Badge, Failure } from "../ui/Surface";
import { Question } from "./Question";
import type { Part, RunState } from "./run";
import { ToolCard } from "./ToolCard";
import css from "./chat.module.css";

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

/** What the model said in one run, from the history. */
export const AssistantMessage = memo(function AssistantMessage({ message, index, actions }: { message: Message; index: number; actions: MessageActions }) {
  const m = message.metadata ?? {};
  return (
    <article className={css.assistant} aria-label="Answer">
      {m.toolCalls?.map((call) => <PartView key={call.id} part={partOf(call)} onMessage={actions.onMessage} />)}
      {message.content && <Markdown text={message.content} />}
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
    </article>
  );
});

const PartView = memo(function PartView({ part, onMessage }: { part: Part; onMessage?: (text: string) => void }) {
  switch (part.type) {
    case "text": return <Markdown text={part.text} />;
    case "tool": return <ToolCard call={part} onMessage={onMessage} />;
    case "question": return <Question question={part} />;
  }
});

/** A run as it goes on. */
export function LiveRun({ state, onRetry, onMessage }: { state: RunState; onRetry: () => void; onMessage: (text: string) => void }) {
  const last = state.parts.at(-1);
  const waiting = state.status === "running" && (last === undefined || (last.type === "tool" && last.state !== "running"));
  return (
    <article className={`${css.assistant} ${css.live}`} aria-label="Answer" aria-busy={state.status === "running"}>
      {state.parts.map((part, i) => <PartView key={part.type === "text" ? `text ${i}` : part.id} part={part} onMessage={onMessage} />)}
      {waiting && <span className={css.thinking} role="status" aria-label="Thinking"><i /><i /><i /></span>}
      {state.status === "failed" && <Failure error={state.error} action={<Button small onClick={onRetry}>Retry</Button>} />}
      {state.status === "stopped" && <div className={css.meta}><Badge tone="warn">stopped</Badge></div>}
    </article>
  );
}
