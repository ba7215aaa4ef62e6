import { useQueryClient } from "@tanstack/react-query";
import clsx from "clsx";
import { Link, useNavigate, useParams, useRouter } from "@tanstack/react-router";
import { Menu as MenuIcon, SquarePen } from "lucide-react";
import { lazy, memo, Suspense, useCallback, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { api, take, type Message } from "../api/client";
import { refreshConversations } from "../api/conversationPages";
import { useConversations, useDisabledApps, useFork, useHistory, useQueued } from "../api/conversations";
import { useSession } from "../api/session";
import { ApiError } from "../api/http";
import { refresh } from "../api/refresh";
import { useAccounts } from "../accounts/data";
import { useHeldTools } from "../approvals/waiting";
import { useApps } from "../api/apps";
import { pageTitle, setPageTitle } from "../shell/notify";
import { useSidebars } from "../shell/sidebars";
import { Button } from "../ui/Button";
import { nextTask, useIdle, useShown } from "../ui/idle";
import { untilLoaded } from "../ui/loading";
import { useListed } from "../ui/narrow";
import { Empty, Notice, Skeleton } from "../ui/Surface";
import { toast, toastError } from "../ui/Toast";
import { Composer, focusIn, useFocus } from "./Composer";
import { useDraft, withWithdrawn } from "./drafts";
import { attachedBefore } from "./files";
import { useRecordBranch, useVersions } from "./branches";
import type { MessageActions } from "./Message";
import { forget, useBegin, useReceived, useRun } from "./runs";
import { isUnsent, requestOf, type Ask, type Run } from "./run";
import css from "./chat.module.css";

/** A new chat does not need the thread. It is loaded once the page is idle, or together with a conversation. */
export const loadThread = () => untilLoaded(() => import("./Thread"));
const Thread = lazy(async () => ({ default: (await loadThread()).Thread }));

/** Loads the thread and prepares it, before the first answer arrives. */
const prepareThread = () =>
  loadThread()
    .then((loaded) => loaded.prepare())
    .catch(() => undefined); // rendering the thread tries again

/** Shows a chat with a model that can use the workspace's tools. */
export function ChatScreen() {
  const { id } = useParams({ strict: false });
  const [chat, setChat] = useState<{ key: number; id?: string; becomes?: string }>({ key: 0, id });
  if (chat.id !== id) setChat({ id, key: id && chat.becomes === id ? chat.key : chat.key + 1 });
  const { key } = chat;
  const begun = useCallback(
    (becomes: string) => setChat((now) => (now.key === key ? { ...now, becomes } : now)),
    [key],
  );
  const [listOpen, setListOpen] = useState(false);
  const navigate = useNavigate();
  const idle = useIdle();
  useEffect(() => {
    if (idle) loadThread().catch(() => undefined); // sending the first message tries again
  }, [idle]);
  const sidebars = useSidebars();
  const listed = useListed();
  return (
    <div className={css.chat}>
      {sidebars ? (
        <sidebars.Conversations here={id} open={listOpen} onClose={() => setListOpen(false)} />
      ) : (
        <aside className={css.side} aria-label="Conversations" />
      )}
      <div className={css.thread}>
        {id && (
          <h1 className="visually-hidden">
            <Title id={id} />
          </h1>
        )}
        {id && sidebars && <TabTitle id={id} />}
        {!listed && (
          <div className={css.top}>
            <Button look="quiet" label="Conversations" onClick={() => setListOpen(true)}>
              <MenuIcon aria-hidden="true" />
            </Button>
            <b>{id ? <Title id={id} /> : "New chat"}</b>
            <Button look="quiet" label="Start a new chat" onClick={() => void navigate({ to: "/chat" })}>
              <SquarePen aria-hidden="true" />
            </Button>
          </div>
        )}
        {/* A new chat stays mounted when it gets its ID. */}
        <Conversation key={key} id={id ?? chat.becomes} onBegun={begun} />
      </div>
    </div>
  );
}

/** Reports whether a run may still be in progress, because the last message has no answer or an unfinished one. */
function mayGoOn(messages: Message[]): boolean {
  const last = messages.at(-1)!;
  if (last.role === "user") return Date.now() - Date.parse(last.timestamp) < 3_600_000;
  return last.metadata?.model !== undefined && last.metadata.outputTokens === undefined && !last.metadata.stopReason;
}

interface ConversationProps {
  id?: string;
  /** Called when a new chat gets its ID. */
  onBegun: (id: string) => void;
}

function useTitle(id: string): string | undefined {
  const { data } = useConversations("");
  const found = data?.pages.flatMap((p) => p.conversations).find((c) => c.id === id);
  return found?.title || found?.preview || undefined;
}

const Title = ({ id }: { id: string }) => useTitle(id) ?? "Conversation";

/** Names the browser tab after the conversation, so that users can distinguish several tabs. */
function TabTitle({ id }: { id: string }) {
  const title = useTitle(id);
  useEffect(() => {
    if (!title) return;
    const named = `${title} · Ropewalk`;
    setPageTitle(named);
    return () => {
      if (pageTitle() === named) setPageTitle("Chat · Ropewalk"); // another screen may have named it already
    };
  }, [title]);
  return null;
}

const Conversation = memo(function Conversation({ id, onBegun }: ConversationProps) {
  const navigate = useNavigate();
  const router = useRouter();
  const { model } = useSession();
  const { run, state } = useRun(id);
  const running = state?.status === "running";
  const unsent = state !== undefined && isUnsent(state);
  // Another window got its message in first, so this one waits for that answer.
  const overtaken = state?.error?.code === "run_in_progress" ? run : undefined;
  const history = useHistory(id, running);
  const begin = useBegin();
  const queries = useQueryClient();
  const { mutate: fork } = useFork();
  const recordBranch = useRecordBranch();
  const versions = useVersions(id);
  const [off, setOff] = useDisabledApps(id);
  const { draft, edit, clear, store } = useDraft(
    id,
    unsent || overtaken || (running && !state.sent) ? state?.ask : undefined,
  );
  const field = useRef<HTMLTextAreaElement>(null);
  useFocus(field);
  const writing = draft.text !== "" || draft.files.length > 0;
  useEffect(() => {
    if (writing) void prepareThread();
  }, [writing]);
  const queued = useQueued(id);

  const open = useCallback(
    (to: string) => void navigate({ to: "/chat/$id", params: { id: to }, replace: id === undefined }),
    [navigate, id],
  );
  const messages = history.data;
  const last = state?.ask.model ?? messages?.findLast((m) => m.role === "assistant")?.metadata?.model;
  const chosen = draft.model || (last && last !== model ? last : "");
  const begun = (ask: Ask) => {
    if (run) forget(run);
    begin({ ...ask, conversationId: id }, messages?.length ?? (id ? Infinity : 0));
    focusIn(field); // the button that was pressed may have disappeared
  };
  useReceived(id, (made) => {
    store(made);
    if (id) return;
    onBegun(made);
    const stays = () => router.latestLocation.pathname === "/chat"; // another screen may still be loading
    void nextTask().then(() => stays() && open(made));
  });
  // Join a run that was started in another window or before this page was loaded.
  const joined = useRef("");
  useEffect(() => {
    const asked = messages?.findLastIndex((m) => m.role === "user") ?? -1;
    if (!id || run || !messages || asked < 0 || !mayGoOn(messages)) return;
    const key = `${id} ${messages.length}`;
    if (joined.current === key) return;
    joined.current = key;
    begin({ message: messages[asked]!.content, conversationId: id }, asked, true);
  }, [id, run, messages, begin]);
  const queue = async (ask: Ask) => {
    try {
      await api.POST("/v1/chat", { body: { ...requestOf(ask), queue: true } });
      store();
      refresh(queries, ["queued", "history"]);
    } catch (error) {
      edit((now) => withWithdrawn(now, { content: ask.message, attachments: ask.attachments }));
      toastError(error);
    }
  };
  const queueOvertaken = useEffectEvent((late: Run) => {
    forget(late);
    void queue(late.state.ask);
  });
  useEffect(() => {
    if (overtaken) queueOvertaken(overtaken);
  }, [overtaken]);
  const withdraw = async () => {
    try {
      const { queued: was } = await take(api.DELETE("/v1/conversations/{id}/queue", { params: { path: { id: id! } } }));
      refresh(queries, ["queued"]);
      if (was) edit((now) => withWithdrawn(now, was));
    } catch (error) {
      toastError(error);
    }
    field.current?.focus();
  };
  const say = () => {
    if (unsent) return toast("The previous message was not sent. Retry or discard it first.", true);
    const ask = {
      message: draft.text.trim(),
      model: chosen || undefined,
      ...(draft.files.length > 0 && { attachments: draft.files }),
      ...(draft.off.length > 0 && { disabledApps: draft.off }),
    };
    clear();
    if (!running) return begun(ask);
    focusIn(field);
    void queue({ ...ask, conversationId: id });
  };
  const discard = () => {
    if (!state || !run) return;
    if (!draft.text && draft.files.length === 0) edit({ text: state.ask.message, files: state.ask.attachments ?? [] });
    forget(run);
    focusIn(field); // the button that was pressed is gone
  };
  // A message cannot be changed. It is sent again, with its files and model, in a fork that ends before it.
  const sayAgain = useCallback(
    (index: number, message: string, model?: string) => {
      const before = messages?.[index];
      if (!id || !before) return;
      const attempt = async (): Promise<void> => {
        try {
          const attachments = await Promise.all((before.metadata?.attachments ?? []).map(attachedBefore));
          const made = await take(
            api.POST("/v1/conversations/{id}/fork", { params: { path: { id } }, body: { atMessage: index } }),
          );
          refreshConversations(queries);
          open(made.id);
          recordBranch(id, index, made.id).catch(() => undefined); // without the record, only the arrows are missing
          begin(
            {
              message,
              conversationId: made.id,
              model: model ?? messages[index + 1]?.metadata?.model,
              ...(attachments.length > 0 && { attachments }),
              ...(off.length > 0 && { disabledApps: off }),
            },
            index,
          );
        } catch (error) {
          toastError(error, () => void attempt());
        }
      };
      void attempt();
    },
    [id, messages, queries, begin, open, recordBranch, off],
  );
  const actions = useMemo<MessageActions>(
    () => ({
      onEdit: (index, message) => sayAgain(index, message),
      onRetry: (index, model) => {
        const before = messages?.slice(0, index).findLastIndex((m) => m.role === "user") ?? -1;
        if (before >= 0) sayAgain(before, messages![before]!.content, model);
      },
      onFork: (index) => id && fork({ id, atMessage: index }, { onSuccess: (made) => open(made.id) }),
      onOpen: open,
      onMessage: (text) => edit((before) => ({ text: before.text ? `${before.text}\n${text}` : text })),
    }),
    [sayAgain, messages, id, fork, open, edit],
  );

  const isGone = history.error instanceof ApiError && history.error.status === 404;
  useEffect(() => {
    if (!running || !run) return;
    const stop = (event: KeyboardEvent) => {
      if (
        event.key !== "Escape" ||
        event.shiftKey ||
        event.defaultPrevented ||
        document.querySelector("dialog[open], [role=menu]")
      )
        return;
      run.stop();
      field.current?.focus();
    };
    document.addEventListener("keydown", stop);
    return () => document.removeEventListener("keydown", stop);
  }, [running, run]);

  const pick = useCallback(
    (words: string) => {
      edit({ text: words });
      field.current?.focus();
    },
    [edit],
  );

  const composer = (
    <>
      {queued && (
        <p className={clsx(css.composer, css.queued)} role="status">
          <b>Queued</b>
          <span>{queued.content || "Files"}</span>
          <Button small onClick={() => void withdraw()}>
            Withdraw
          </Button>
        </p>
      )}
      <Composer
        running={running}
        mayQueue={id !== undefined && !queued}
        draft={{ ...draft, model: chosen === model ? "" : chosen }}
        off={id ? off : draft.off}
        onOff={id ? setOff : (to) => edit({ off: to })}
        onDraft={(to) => edit(to.model === "" && last ? { ...to, model: model ?? "" } : to)}
        fieldRef={field}
        onSend={say}
        onStop={() => {
          run?.stop();
          field.current?.focus();
        }}
      />
    </>
  );
  if (isGone) {
    return (
      <Empty
        title={history.data ? "This conversation was deleted" : "Conversation not found"}
        actions={
          <Button look="primary" onClick={() => void navigate({ to: "/chat" })}>
            Start a new chat
          </Button>
        }
      >
        {history.data
          ? "It was deleted in another window or by another program."
          : "It may have been deleted, or it may belong to another workspace or person."}
      </Empty>
    );
  }
  const held = <HeldTools />;
  if (!id && !state)
    return (
      <>
        <Hello onPick={pick} />
        {model === null && <NoModel />}
        {held}
        {composer}
      </>
    );
  return (
    <>
      <Suspense
        fallback={
          <div className={css.scroll}>
            <div className={css.messages}>
              <Skeleton lines={4} />
            </div>
          </div>
        }
      >
        <Thread
          messages={messages ?? []}
          versions={versions}
          loading={history.isPending && id !== undefined && !state}
          error={history.error}
          run={run}
          actions={actions}
          onRetry={() => {
            if (!state) return;
            // If the server has stored the message, it is sent again in a fork, so that it does not appear twice.
            if (messages?.[state.since]?.role === "user") sayAgain(state.since, state.ask.message, state.ask.model);
            else begun(state.ask);
          }}
          onDiscard={discard}
        />
      </Suspense>
      {model === null && <NoModel />}
      {held}
      {composer}
    </>
  );
});

/** Explains why some tools are not available to the model. */
function HeldTools() {
  const held = useHeldTools();
  const { user } = useSession();
  const { data: accounts = [] } = useAccounts(held.some((pin) => pin.account));
  const pins = held.filter((pin) => !pin.account || accounts.some((a) => a.id === pin.account && a.owner === user.id));
  if (pins.length === 0) return null;
  return (
    <p className={clsx(css.composer, css.note)}>
      Not available to the model:{" "}
      {pins
        .slice(0, 3)
        .map((pin) => `${pin.tool} of ${pin.server}`)
        .join(", ")}
      {pins.length > 3 && ` and ${pins.length - 3} more`}, which changed without a new version.{" "}
      <Link to="/approvals">See the change</Link>
    </p>
  );
}

function NoModel() {
  const { isOrgAdmin } = useSession();
  return (
    <div className={css.composer}>
      <Notice tone="warn">
        <p>
          No model is configured.{" "}
          {isOrgAdmin ? (
            <>
              Set <code>models.default</code> and a provider's key in <code>ropewalk.yaml</code>, or ANTHROPIC_API_KEY
              or OPENAI_API_KEY in the server's environment.
            </>
          ) : (
            "Ask an organization admin to configure one."
          )}
        </p>
      </Notice>
    </div>
  );
}

const Hello = memo(function Hello({ onPick }: { onPick: (words: string) => void }) {
  const { user, workspace, isWorkspaceAdmin, model } = useSession();
  const { data: apps = [] } = useApps(useShown());
  const navigate = useNavigate();
  const running = apps.filter((a) => a.status === "running");
  const name = (user.displayName || "").split(" ")[0];
  return (
    <div className={css.hello}>
      <h1>{name && name !== "Owner" ? `Hello, ${name}` : "What would you like to do?"}</h1>
      <p>
        {running.length === 0
          ? isWorkspaceAdmin
            ? "The model uses tools from apps, but no app is running yet."
            : `No app is running yet. Ask an admin of ${workspace.name} to start one.`
          : model === null
            ? "Chats need a model, but the tools work without one. Try them here, or use them from your own client."
            : `The model can use the tools of ${running.length === 1 ? running[0]!.name : `${running.length} apps`}.`}
      </p>
      <div className={css.chips}>
        {running.length === 0 && isWorkspaceAdmin && (
          <Button
            onClick={() => void navigate({ to: "/apps", search: apps.length === 0 ? { install: "registry" } : {} })}
          >
            {apps.length === 0 ? "Install the first app" : "Start an app"}
          </Button>
        )}
        {running.length > 0 && model === null && (
          <>
            <Button onClick={() => void navigate({ to: "/tools" })}>Try a tool</Button>
            <Button onClick={() => void navigate({ to: "/connect" })}>Connect a client</Button>
          </>
        )}
        {(model === null ? [] : running).slice(0, 4).map((a) => (
          <Button key={a.name} onClick={() => onPick(`What can I do with ${a.ui?.name || a.name}?`)}>
            What can {a.ui?.name || a.name} do?
          </Button>
        ))}
      </div>
    </div>
  );
});
