import { ArrowDown } from "lucide-react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Message } from "../api/client";
import { Button } from "../ui/Button";
import { Failure, Skeleton } from "../ui/Surface";
import { AssistantMessage, LiveRun, UserMessage, type MessageActions } from "./Message";
import type { RunState } from "./run";
import css from "./chat.module.css";

interface Props {
  messages: Message[];
  loading: boolean;
  error: Error | null;
  state?: RunState;
  actions: MessageActions;
  onRetry: () => void;
}

/** What was said, and what is being said. It stays at its end unless the person scrolls up. */
export function Thread({ messages, loading, error, state, actions, onRetry }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef(0);
  const tall = useRef(0);
  const [away, setAway] = useState(false);
  const toEnd = () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  useLayoutEffect(() => {
    if (atEnd.current) toEnd();
  }, [messages, state]);
  useEffect(() => {
    const content = scroller.current?.firstElementChild;
    if (!content) return;
    const observer = new ResizeObserver(() => atEnd.current && toEnd());
    observer.observe(content);
    return () => observer.disconnect();
  }, []);
  const asked = state && messages.at(-1)?.role === "user" && messages.at(-1)?.content === state.ask.message;
  const answered = state && state.status !== "running" && messages.at(-1)?.role === "assistant" && state.status !== "failed" && messages.at(-2)?.content === state.ask.message;
  return (
    <div
      className={css.scroll} ref={scroller} tabIndex={0} role="region" aria-label="Conversation"
      onScroll={(e) => {
        // What grows moves the end away; only scrolling up is the person's own.
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
        {messages.map((m, i) => (m.role === "user"
          ? <UserMessage key={i} text={m.content} index={i} actions={actions} attachments={m.metadata?.attachments ?? (m as { attachments?: { name?: string }[] }).attachments} />
          : <AssistantMessage key={i} message={m} index={i} actions={actions} />))}
        {state && !asked && !answered && <UserMessage text={state.ask.message} attachments={state.ask.attachments} />}
        {state && !answered && <LiveRun state={state} onRetry={onRetry} onMessage={actions.onMessage} />}
      </div>
      {away && <Button className="to-end" style={{ position: "absolute", bottom: 96, left: "50%", translate: "-50%" }} label="To the end" onClick={() => { atEnd.current = true; toEnd(); }}><ArrowDown aria-hidden="true" /></Button>}
    </div>
  );
}
