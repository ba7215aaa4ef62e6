import { ArrowDown } from "lucide-react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Message } from "../api/client";
import { Button } from "../ui/Button";
import { moment, short } from "../ui/format";
import { nextTask } from "../ui/idle";
import { Failure, Notice, Skeleton } from "../ui/Surface";
import type { Versions } from "./branches";
import { Answer, loadMarkdown, UserMessage, type MessageActions } from "./Message";
import { isUnsent, type Part, type Run, type RunState } from "./run";
import { useRunState } from "./runs";
import css from "./chat.module.css";

interface Props {
  messages: Message[];
  /** The versions of messages that have several, by position. */
  versions: ReadonlyMap<number, Versions>;
  loading: boolean;
  error: Error | null;
  run?: Run;
  actions: MessageActions;
  onRetry: () => void;
  onDiscard: () => void;
}

/** Loads and prepares everything that answers need, in several tasks. */
export async function prepare(): Promise<void> {
  await loadMarkdown();
  await nextTask();
  moment(new Date().toISOString());
  short(0);
}

const gap = 16; // pixels above a question

/** Shows the messages of a conversation. It stays scrolled to the end unless the person scrolls up. */
export function Thread({ messages, versions, loading, error, run, actions, onRetry, onDiscard }: Props) {
  const state = useRunState(run);
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef(0);
  const tall = useRef(0);
  const [away, setAway] = useState(false);
  // It does not scroll past the beginning of a question that waits for an answer.
  const toEnd = () => {
    const box = scroller.current!;
    const question = box.querySelector("[data-open-question]");
    const past = question ? question.getBoundingClientRect().top - box.getBoundingClientRect().top - gap : Infinity;
    if (past > 0) box.scrollTo({ top: Math.min(box.scrollHeight, box.scrollTop + past) });
  };
  // The observer runs after the layout. Scrolling any earlier would need a layout of its own.
  useEffect(() => {
    const box = scroller.current!;
    const observer = new ResizeObserver(() => atEnd.current && toEnd());
    observer.observe(box);
    observer.observe(box.firstElementChild!);
    return () => observer.disconnect();
  }, []);
  // A message that the person sends is shown, even if they had scrolled up.
  const sending = state?.status === "running" && !state.sent;
  useEffect(() => {
    if (!sending) return;
    atEnd.current = true;
    toEnd();
  }, [sending]);
  // Whether the history contains the run's message and answer.
  const asked = state && messages[state.since]?.role === "user";
  const kept = asked && state.read && messages[state.since + 1]?.role === "assistant";
  // The history may contain the answer before all events of the run have been shown.
  const shown = state && !kept ? messages.slice(0, state.since + 1) : messages;
  const rows = shown.map((m, i) => {
    if (m.role === "user")
      return (
        <UserMessage
          key={i}
          text={m.content}
          index={i}
          versions={versions.get(i)}
          actions={actions}
          attachments={m.metadata?.attachments}
        />
      );
    const failed = kept && state.status === "failed" && i === state.since + 1;
    return (
      <Answer
        key={i}
        message={m}
        index={i}
        actions={actions}
        state={failed ? state : undefined}
        onRetry={failed ? onRetry : undefined}
      />
    );
  });
  const unsent = state && !asked && isUnsent(state);
  if (state && !asked)
    rows.push(
      <UserMessage
        key={state.since}
        text={state.ask.message}
        attachments={state.ask.attachments}
        unsent={unsent ? { onRetry, onDiscard } : undefined}
      />,
    );
  if (state && !kept && !unsent)
    rows.push(<Answer key={state.since + 1} state={state} actions={actions} onRetry={onRetry} />);
  return (
    <>
      <Announcer state={state} />
      <div
        className={css.scroll}
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
        onScroll={(e) => {
          // Growing content also changes the distance to the end. Only a person scrolls up.
          const { scrollTop, scrollHeight, clientHeight } = e.currentTarget;
          const near = scrollHeight - scrollTop - clientHeight < 60;
          if (near) atEnd.current = true;
          else if (scrollTop < before.current - 4 && scrollHeight >= tall.current) atEnd.current = false;
          before.current = scrollTop;
          tall.current = scrollHeight;
          setAway(!atEnd.current);
        }}
      >
        <div className={css.messages}>
          {error && <Failure error={error} />}
          {loading && <Skeleton lines={4} />}
          {rows}
          {!state && messages.at(-1)?.role === "user" && (
            <Notice
              tone="warn"
              action={
                <Button small onClick={() => actions.onRetry(messages.length)}>
                  Retry
                </Button>
              }
            >
              <p role="status">
                There is no answer yet. If an answer is being written, for example in another window, it will appear
                here.
              </p>
            </Notice>
          )}
        </div>
        {away && (
          <Button
            className="to-end"
            style={{ position: "absolute", bottom: 96, left: "50%", translate: "-50%" }}
            label="Scroll to the end"
            onClick={() => {
              atEnd.current = true;
              toEnd();
            }}
          >
            <ArrowDown aria-hidden="true" />
          </Button>
        )}
      </div>
    </>
  );
}

const announced = 2_000; // characters per second; an answer that grows faster is not read aloud completely

/** Announces the answer to screen readers sentence by sentence, and the progress of tools. */
function Announcer({ state }: { state?: RunState }) {
  const [sentence, setSentence] = useState("");
  const latest = useRef(state);
  // A layout effect, because the cleanup below runs before other effects and must know the end of the answer.
  useLayoutEffect(() => {
    latest.current = state;
  }, [state]);
  const running = state?.status === "running";
  useEffect(() => {
    if (!running) return;
    let heard = 0;
    const speak = (ended: boolean) => {
      const all = (latest.current?.parts ?? []).map(spoken).join(" ");
      const end = ended ? all.length : Math.max(...[". ", "! ", "? ", "\n"].map((mark) => all.lastIndexOf(mark) + 1));
      if (end <= heard) return;
      setSentence(all.slice(Math.max(heard, end - announced), end));
      heard = end;
    };
    const timer = setInterval(() => speak(false), 1_000);
    return () => {
      clearInterval(timer);
      speak(true);
    };
  }, [running]);
  return (
    <div className="visually-hidden" aria-live="polite">
      {sentence}
    </div>
  );
}

function spoken(part: Part): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "question":
      return `${part.request.server === "system" ? "Ropewalk" : part.request.server} asks: ${part.request.message}.`;
    case "tool":
      return `Tool ${part.name} ${part.state === "running" ? "was called" : part.state === "ok" ? "returned" : "failed"}.`;
    default:
      return "";
  }
}
