import { useQuery } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight, FileText, GitFork, Pencil, RotateCcw, Shuffle } from "lucide-react";
import { lazy, memo, Suspense, useState } from "react";
import type { Message, ToolCall } from "../api/client";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/Code";
import { Textarea } from "../ui/Field";
import { cost, millis, moment, plural, short } from "../ui/format";
import { Menu, MenuItem, MenuLabel } from "../ui/Menu";
import { untilLoaded } from "../ui/loading";
import { Picture } from "../ui/Picture";
import { saveFile } from "../ui/save";
import { Badge, Failure } from "../ui/Surface";
import { toastError } from "../ui/Toast";
import type { Versions } from "./branches";
import { useModels } from "./capabilities";
import { Question } from "./Question";
import { attachedBefore } from "./files";
import { sendsMessage } from "./keys";
import { failureOf, type AsidePart, type Attachment, type Part, type RunState } from "./run";
import { ToolCard } from "./ToolCard";
import css from "./chat.module.css";

let renderer: Promise<typeof import("../ui/Markdown")> | undefined;

/** Loads and prepares the Markdown renderer for answers. A new chat is usable without it. */
export const loadMarkdown = () =>
  (renderer ??= untilLoaded(() => import("../ui/Markdown")).then(async (loaded) => {
    await loaded.prepare();
    return loaded;
  }));

const Markdown = lazy(async () => ({ default: (await loadMarkdown()).Markdown }));

export interface MessageActions {
  onEdit: (index: number, text: string) => void;
  /** Without a model, the same model answers again. */
  onRetry: (index: number, model?: string) => void;
  onFork: (index: number) => void;
  /** Opens another conversation. */
  onOpen: (id: string) => void;
  onMessage: (text: string) => void;
}

interface UserProps {
  text: string;
  index?: number;
  attachments?: Attachment[];
  /** The versions of the message, if there are several. */
  versions?: Versions;
  actions?: MessageActions;
  /** The actions on a message that was not sent. */
  unsent?: { onRetry: () => void; onDiscard: () => void };
}

/** Shows one of the person's own messages. */
export const UserMessage = memo(function UserMessage({
  text,
  index,
  attachments,
  versions,
  actions,
  unsent,
}: UserProps) {
  const [edited, setEdited] = useState<string | null>(null);
  if (edited !== null && actions && index !== undefined) {
    return (
      <form
        style={{ display: "grid", gap: 8 }}
        onSubmit={(e) => {
          e.preventDefault();
          if (!edited.trim()) return;
          setEdited(null);
          actions.onEdit(index, edited);
        }}
      >
        <Textarea
          aria-label="Edit the message"
          rows={4}
          value={edited}
          autoFocus
          onFocus={({ target }) => target.setSelectionRange(edited.length, edited.length)}
          onChange={(e) => setEdited(e.target.value)}
          onKeyDown={(e) => {
            if (e.key === "Escape" && !e.shiftKey) {
              e.preventDefault(); // otherwise, Escape would also stop the answer
              setEdited(null);
            } else if (sendsMessage(e)) {
              e.preventDefault();
              e.currentTarget.form?.requestSubmit();
            }
          }}
        />
        <div className={css.row}>
          <Button type="submit" look="primary" small disabled={!edited.trim()}>
            Send in a new branch
          </Button>
          <Button small onClick={() => setEdited(null)}>
            Cancel
          </Button>
        </div>
      </form>
    );
  }
  return (
    <div className={css.user}>
      {attachments && attachments.length > 0 && (
        <div className={css.row}>
          {attachments.map((a, i) => (
            <Attached key={i} file={a} />
          ))}
        </div>
      )}
      {text && (
        <div className={css.bubble} dir="auto">
          {text}
        </div>
      )}
      {unsent && (
        <div className={css.meta} role="status">
          <Badge tone="bad">Not sent</Badge> The server cannot be reached.
          <Button small onClick={unsent.onRetry}>
            Retry
          </Button>
          <Button small look="quiet" onClick={unsent.onDiscard}>
            Discard
          </Button>
        </div>
      )}
      {actions && versions && <VersionArrows versions={versions} onOpen={actions.onOpen} />}
      {actions && index !== undefined && (
        <span className={css.acts}>
          <CopyButton text={text} />
          <Button look="quiet" small label="Edit" onClick={() => setEdited(text)}>
            <Pencil aria-hidden="true" />
          </Button>
        </span>
      )}
    </div>
  );
});

/** Shows arrows for switching between the versions of a message. */
function VersionArrows({ versions: { ids, here }, onOpen }: { versions: Versions; onOpen: (id: string) => void }) {
  return (
    <span className={css.versions} role="group" aria-label="Versions of this message">
      <Button look="quiet" small label="Previous version" disabled={here === 0} onClick={() => onOpen(ids[here - 1]!)}>
        <ChevronLeft aria-hidden="true" />
      </Button>
      {here + 1} of {ids.length}
      <Button
        look="quiet"
        small
        label="Next version"
        disabled={here === ids.length - 1}
        onClick={() => onOpen(ids[here + 1]!)}
      >
        <ChevronRight aria-hidden="true" />
      </Button>
    </span>
  );
}

/** Shows an attachment: a picture, or the name of a file of another type. */
function Attached({ file }: { file: Attachment }) {
  const isPicture = file.mimeType.startsWith("image/");
  const stored = useQuery({
    enabled: isPicture && !file.data && file.url?.startsWith("/") === true,
    queryKey: ["attachment", file.url],
    staleTime: Infinity,
    queryFn: () => attachedBefore({ ...file, url: file.url! }),
  });
  const data = file.data ?? stored.data?.data;
  if (isPicture && data)
    return <Picture className={css.picture} src={`data:${file.mimeType};base64,${data}`} name={file.name} />;
  const { url } = file;
  if (isPicture || !url) return <Badge>{file.name}</Badge>;
  const save = async () => {
    const { data = "" } = await attachedBefore({ ...file, url });
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    saveFile(file.name, new Blob([bytes], { type: file.mimeType }));
  };
  return (
    <Button small title="Download" onClick={() => void save().catch(toastError)}>
      <FileText aria-hidden="true" />
      {file.name}
    </Button>
  );
}

const partOf = (call: ToolCall & { result?: Record<string, unknown> }): Part => ({
  type: "tool",
  result: call.result,
  id: call.id,
  name: call.name,
  input: call.input as Record<string, unknown>,
  state: call.ok ? "ok" : "failed",
  account: call.account,
  ms: call.ms,
  output: call.output,
  resourceUri: call.resourceUri,
});

/** Returns the parts of a stored answer in order. If the order is unknown, the calls come first. */
function partsOf(message: Message): Part[] {
  const calls = (message.metadata?.toolCalls ?? []).map(partOf);
  const text = (text: string): Part => ({ type: "text", text });
  const parts = message.metadata?.parts;
  if (!parts) return message.content ? [...calls, text(message.content)] : calls;
  return (parts as { type: string; text?: string; ms?: number; index?: number }[]).flatMap(
    ({ type, text: said = "", ms, index }): Part[] => {
      switch (type) {
        case "text":
          return [text(said)];
        case "reasoning":
          return [{ type, text: said, ms }];
        case "summary":
          return [{ type, text: said }];
        default:
          return calls[index ?? -1] ? [calls[index ?? -1]!] : [];
      }
    },
  );
}

const PartView = memo(function PartView({ part, onMessage }: { part: Part; onMessage?: (text: string) => void }) {
  switch (part.type) {
    case "reasoning":
    case "summary":
      return <Aside part={part} />;
    case "text":
      return (
        <Suspense fallback={<p className={css.raw}>{part.text}</p>}>
          <Markdown text={part.text} />
        </Suspense>
      );
    case "tool":
      return <ToolCard call={part} onMessage={onMessage} />;
    case "question":
      return <Question question={part} />;
  }
});

/** Shows reasoning or a summary, collapsed because it is not part of the answer. */
const Aside = ({ part: { type, text, ms } }: { part: AsidePart }) => (
  <details className={css.aside}>
    <summary>
      {type === "summary"
        ? "Earlier messages were summarized for the model"
        : ms === undefined
          ? "Thinking"
          : `Thought for ${millis(ms)}`}
    </summary>
    <div className={css.raw} dir="auto">
      {text}
    </div>
  </details>
);

const stops: Record<string, string> = {
  cancelled: "stopped",
  token_budget: "token budget reached",
  max_iterations: "too many turns",
  incomplete: "incomplete",
  content_filter: "filtered by the provider",
  refusal: "refused by the model",
  context_window: "too long for the model",
  no_tool_calls: "no tool call",
  unknown_end: "ended early",
};

interface AnswerProps {
  /** The answer from the history. */
  message?: Message;
  index?: number;
  /** The run, until the history contains the whole answer. */
  state?: RunState;
  actions: MessageActions;
  onRetry?: () => void;
}

/** Shows the answer of one run, both live and from the history. One component handles both, so that nothing on the
 * screen changes when the run ends. */
export const Answer = memo(function Answer({ message, index = 0, state, actions, onRetry }: AnswerProps) {
  const parts = message ? partsOf(message) : (state?.parts ?? []);
  const last = parts.at(-1);
  const running = !message && state?.status === "running";
  const waiting = running && (last === undefined || (last.type === "tool" && last.state !== "running"));
  let texts = 0;
  const failure = failureOf(message, state);
  const isEmpty = message && !failure && !message.metadata?.stopReason && parts.every((p) => p.type === "reasoning");
  return (
    <article className={css.assistant} aria-label="Answer" aria-busy={running ? true : undefined}>
      {parts.map((part) => (
        <PartView key={"id" in part ? part.id : `${part.type} ${texts++}`} part={part} onMessage={actions.onMessage} />
      ))}
      {waiting && (
        <span className={css.thinking} role="status" aria-label="Thinking">
          <i />
          <i />
          <i />
        </span>
      )}
      {isEmpty && <p className={css.note}>The model ended its turn without an answer.</p>}
      {failure && (
        <Failure
          error={failure}
          isPast={!state}
          action={
            <Button small onClick={onRetry ?? (() => actions.onRetry(index))}>
              Retry
            </Button>
          }
        />
      )}
      {!message && state?.status === "stopped" && (
        <div className={css.meta}>
          <Badge tone="warn">stopped</Badge>
        </div>
      )}
      {message && <About message={message} index={index} actions={actions} explained={failure !== undefined} />}
    </article>
  );
});

interface AboutProps {
  message: Message;
  index: number;
  actions: MessageActions;
  /** Whether a notice already explains why the answer ended. */
  explained: boolean;
}

/** Shows the model, tokens and cost of an answer, with its actions. */
function About({ message, index, actions, explained }: AboutProps) {
  const m = message.metadata ?? {};
  const others = useModels().filter((name) => name !== m.model);
  return (
    <div className={css.meta}>
      {m.skill && <Badge tone="accent">skill {m.skill}</Badge>}
      {m.stopReason && !explained && (
        <Badge tone="warn">{stops[m.stopReason] ?? m.stopReason.replaceAll("_", " ")}</Badge>
      )}
      {m.stopMessage && !explained && <span>{m.stopMessage}</span>}
      {m.model && <span title={moment(message.timestamp)}>{m.model}</span>}
      {m.outputTokens === undefined && m.stopReason && <span title="Usage unknown">– tokens</span>}
      {m.outputTokens !== undefined && (
        <span title="Tokens read and written">
          {m.inputTokens === undefined ? "–" : short(m.inputTokens)} → {short(m.outputTokens)} tokens
        </span>
      )}
      {m.costUsd != null && <span>{cost(m.costUsd)}</span>}
      {m.llmMs !== undefined && <span>{millis(m.llmMs)}</span>}
      {(m.iterations ?? 0) > 1 && <span>{plural(m.iterations!, "turn")}</span>}
      <span className={css.acts}>
        <CopyButton text={message.content} />
        <Button look="quiet" small label="Retry" onClick={() => actions.onRetry(index)}>
          <RotateCcw aria-hidden="true" />
        </Button>
        {others.length > 0 && (
          <Menu
            trigger={
              <Button look="quiet" small label="Retry with another model">
                <Shuffle aria-hidden="true" />
              </Button>
            }
          >
            <MenuLabel>Retry with</MenuLabel>
            {others.map((name) => (
              <MenuItem key={name} onSelect={() => actions.onRetry(index, name)}>
                {name}
              </MenuItem>
            ))}
          </Menu>
        )}
        <Button look="quiet" small label="Fork from here" onClick={() => actions.onFork(index + 1)}>
          <GitFork aria-hidden="true" />
        </Button>
      </span>
    </div>
  );
}
