import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useEffectEvent, useSyncExternalStore } from "react";
import { useSession } from "../api/session";
import { dropSent, useDraftPrefix } from "./drafts";
import { Run, type Ask, type RunOutline, type RunState } from "./run";
import { newChat } from "../api/tab";
import { notifyHidden } from "../shell/notify";
import { refreshConversations } from "../api/conversationPages";

/** The runs of this page by conversation. A new chat's run has a key of its own until its conversation is known. */
let runs: ReadonlyMap<string, Run> = new Map();
const readers = new Set<() => void>();

function set(change: (map: Map<string, Run>) => void): void {
  const next = new Map(runs);
  change(next);
  runs = next;
  for (const reader of readers) reader();
}

const subscribe = (reader: () => void) => {
  readers.add(reader);
  return () => void readers.delete(reader);
};

const fresh = (workspace: string) => `${workspace} new`;
const never = () => () => undefined;

/** Returns the run of a conversation or of a new chat. */
export function useRun(conversationId?: string): { run: Run | undefined; state: RunOutline | undefined } {
  const { workspace } = useSession();
  const all = useSyncExternalStore(subscribe, () => runs);
  const run = all.get(conversationId ?? fresh(workspace.id));
  const state = useSyncExternalStore(run?.subscribe ?? never, () => run?.outline);
  return { run, state };
}

/** Returns a run's state, including the part of its answer that has arrived. */
export const useRunState = (run: Run | undefined): RunState | undefined =>
  useSyncExternalStore(run?.subscribe ?? never, () => run?.snapshot());

/** Returns all runs by conversation. */
export const useRunning = () => useSyncExternalStore(subscribe, () => runs);

/** The callbacks of the chats that are shown, by the key of their run. */
const shown = new Map<string, (conversationId: string) => void>();

/** Notifies the chat that is shown once the server has received its message. It may not be the chat that sent the message. */
export function useReceived(conversationId: string | undefined, then: (conversationId: string) => void): void {
  const { workspace } = useSession();
  const key = conversationId ?? fresh(workspace.id);
  const tell = useEffectEvent(then);
  useEffect(() => {
    const heard = (id: string) => tell(id);
    shown.set(key, heard);
    return () => {
      if (shown.get(key) === heard) shown.delete(key);
    };
  }, [key]);
}

/** Starts a run that follows the given number of messages. */
export function useBegin(): (ask: Ask, since: number, joins?: boolean) => void {
  const { workspace } = useSession();
  const drafts = useDraftPrefix();
  const queries = useQueryClient();
  return useCallback(
    (ask, since, joins = false) => {
      const key = ask.conversationId ?? fresh(workspace.id);
      const run = new Run(
        ask,
        since,
        async (settled) => {
          const id = settled.state.conversationId;
          if (!settled.state.gone) notifyHidden(settled.state.status === "done" ? "Answer ready" : "Answer ended");
          refreshConversations(queries);
          if (!id) return readers.forEach((reader) => reader());
          // A history request in progress may not include the answer, and a refetch would wait for it.
          const history = { queryKey: ["history", workspace.id, id] };
          await queries.cancelQueries(history);
          await queries.refetchQueries(history);
          const failed = queries.getQueryState(history.queryKey)?.status === "error";
          if (!failed) settled.markRead();
          const answered = queries.getQueryData<{ role: string }[]>(history.queryKey)?.at(-1)?.role === "assistant";
          const over = settled.state.status === "done" || (settled.state.gone && (answered || joins));
          if (over && !failed) set((map) => map.get(id) === settled && map.delete(id));
          else readers.forEach((reader) => reader());
        },
        (begun, id) => {
          if (!ask.conversationId)
            set((map) => {
              map.delete(key);
              map.set(id, begun);
            });
          refreshConversations(queries);
          if (joins) return;
          const tell = shown.get(key);
          if (tell) tell(id);
          else dropSent(drafts + (ask.conversationId ?? newChat()), ask.message);
        },
        joins,
        runs.get(key),
      );
      set((map) => map.set(key, run));
    },
    [workspace.id, drafts, queries],
  );
}

/** Removes a run that has ended. */
export const forget = (run: Run) =>
  set((map) => {
    for (const [key, other] of map) if (other === run) map.delete(key);
  });
