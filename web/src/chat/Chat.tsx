import { useNavigate, useParams } from "@tanstack/react-router";
import { Menu as MenuIcon, SquarePen } from "lucide-react";
import { lazy, memo, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useConversations, useFork, useHistory } from "../api/conversations";
import { useSession } from "../api/session";
import { useApps } from "../api/apps";
import { useSidebars } from "../shell/sidebars";
import { Button } from "../ui/Button";
import { useIdle, useShown } from "../ui/idle";
import { useNarrow } from "../ui/narrow";
import { Notice, Skeleton } from "../ui/Surface";
import { toastError } from "../ui/Toast";
import { Composer, useFocus } from "./Composer";
import type { MessageActions } from "./Message";
import { forget, useBegin, useRun } from "./runs";
import type { Attachment } from "./run";
import css from "./chat.module.css";

/** What shows messages is not needed to begin a chat: it is loaded once the page is shown, or with a conversation. */
export const loadThread = () => import("./Thread");
const Thread = lazy(async () => ({ default: (await loadThread()).Thread }));

/** Talking to a model that uses the tools of the workspace. */
export function ChatScreen() {
  const { id } = useParams({ strict: false });
  const [listOpen, setListOpen] = useState(false);
  const navigate = useNavigate();
  const idle = useIdle();
  useEffect(() => {
    if (idle) loadThread().catch(() => undefined); // the first message tries again
  }, [idle]);
  const sidebars = useSidebars();
  const narrow = useNarrow();
  return (
    <div className={css.chat}>
      {sidebars ? <sidebars.Conversations here={id} open={listOpen} onClose={() => setListOpen(false)} /> : <aside className={css.side} aria-label="Conversations" />}
      <div className={css.thread}>
        {id && <h1 className="visually-hidden"><Title id={id} /></h1>}
        {narrow && (
          <div className={css.top}>
            <Button look="quiet" label="Conversations" onClick={() => setListOpen(true)}><MenuIcon aria-hidden="true" /></Button>
            <b>{id ? <Title id={id} /> : "New chat"}</b>
            <Button look="quiet" label="Start a new chat" onClick={() => void navigate({ to: "/chat" })}><SquarePen aria-hidden="true" /></Button>
          </div>
        )}
        <Conversation key={id ?? "new"} id={id} />
      </div>
    </div>
  );
}

function Title({ id }: { id: string }) {
  const { data } = useConversations("");
  return data?.pages.flatMap((p) => p.conversations).find((c) => c.id === id)?.title || "Conversation";
}

function Conversation({ id }: { id?: string }) {
  const navigate = useNavigate();
  const { model } = useSession();
  const { run, state } = useRun(id);
  const history = useHistory(id, state?.status === "running");
  const begin = useBegin();
  const fork = useFork();
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  useFocus(field, id);
  const running = state?.status === "running";

  const open = useCallback((to: string) => void navigate({ to: "/chat/$id", params: { id: to }, replace: id === undefined }), [navigate, id]);
  const messages = history.data;
  const say = (message: string, chosen?: string, attachments: Attachment[] = []) => {
    if (run) forget(run);
    begin({ message, conversationId: id, model: chosen, ...(attachments.length > 0 && { attachments }) }, messages?.length ?? (id ? Infinity : 0), (made) => { if (!id) open(made); });
  };
  // A message cannot be changed: it is said again in a fork that ends before it.
  const sayAgain = useCallback((index: number, message: string) => {
    if (!id) return;
    fork.mutateAsync({ id, atMessage: index }).then((made) => {
      open(made.id);
      begin({ message, conversationId: made.id }, index, () => undefined);
    }).catch(toastError);
  }, [id, fork.mutateAsync, begin, open]);
  const actions = useMemo<MessageActions>(() => ({
    onEdit: sayAgain,
    onRetry: (index) => {
      const before = messages?.slice(0, index).findLastIndex((m) => m.role === "user") ?? -1;
      if (before >= 0) sayAgain(before, messages![before]!.content);
    },
    onFork: (index) => id && fork.mutate({ id, atMessage: index }, { onSuccess: (made) => open(made.id) }),
    onMessage: setText,
  }), [sayAgain, messages, id, fork.mutate, open]);

  const pick = useCallback((words: string) => {
    setText(words);
    field.current?.focus();
  }, []);

  const composer = <Composer running={running} text={text} onText={setText} fieldRef={field} onSend={say} onStop={() => run?.stop()} />;
  if (!id && !state) return <><Hello onPick={pick} />{model === null && <NoModel />}{composer}</>;
  return (
    <>
      <Suspense fallback={<div className={css.scroll}><div className={css.messages}><Skeleton lines={4} /></div></div>}>
        <Thread messages={messages ?? []} loading={history.isPending && id !== undefined && !state} error={history.error} state={state} actions={actions} onRetry={() => state && say(state.ask.message, state.ask.model, state.ask.attachments)} />
      </Suspense>
      {model === null && <NoModel />}
      {composer}
    </>
  );
}

const NoModel = () => (
  <div className={css.composer}>
    <Notice tone="warn"><p>No model is configured. Set <code>models.default</code> and a provider's key in <code>ropewalk.yaml</code>, or ANTHROPIC_API_KEY or OPENAI_API_KEY in the server's environment.</p></Notice>
  </div>
);

const Hello = memo(function Hello({ onPick }: { onPick: (words: string) => void }) {
  const { user } = useSession();
  const { data: apps = [] } = useApps(useShown());
  const running = apps.filter((a) => a.status === "running");
  const name = (user.displayName || "").split(" ")[0];
  return (
    <div className={css.hello}>
      <h1>{name && name !== "Owner" ? `Hello, ${name}` : "What shall we do?"}</h1>
      <p>{running.length === 0 ? "Install an app, and the model can use its tools." : `The model can use the tools of ${running.length === 1 ? running[0]!.name : `${running.length} apps`}.`}</p>
      <div className={css.chips}>
        {running.slice(0, 4).map((a) => <Button key={a.name} onClick={() => onPick(`What can I do with ${a.ui?.name || a.name}?`)}>What can {a.ui?.name || a.name} do?</Button>)}
      </div>
    </div>
  );
});
