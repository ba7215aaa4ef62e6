import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { ApiError } from "./http";
import { refreshConversations } from "./conversationPages";
import { refresh, refreshAll } from "./refresh";
import { readEvents } from "./sse";

/** One event of the workspace, in the order in which this page saw them. */
export interface WorkspaceEvent {
  seq: number;
  name: string;
  at: string;
  data: Record<string, unknown>;
}

export type Connection = "connecting" | "open" | "lost";

const limit = 100_000;
let all: WorkspaceEvent[] = [];
let connection: Connection = "connecting";
let failures = 0;
let running: AbortController | null = null;
const readers = new Set<() => void>();

const notify = () => readers.forEach((reader) => reader());
const subscribe = (reader: () => void) => {
  readers.add(reader);
  return () => readers.delete(reader);
};

export const useEvents = () => useSyncExternalStore(subscribe, () => all);
export const useConnection = () => useSyncExternalStore(subscribe, () => connection);

function setConnection(to: Connection) {
  if (connection === to) return;
  connection = to;
  notify();
}

/** Which cached answers an event makes old. */
const affected: [RegExp, string[]][] = [
  [/^bundle\.|^app\./, ["apps", "app", "health", "tools", "bootstrap"]],
  [/^data\.changed/, ["data"]],
  [/^conversation\./, ["conversations"]],
  [/^approval|^pin|^tool/, ["approvals", "pins", "tools"]],
];

/**
 * What came since the readers were notified. Many events at once, as when a thousand apps start, are one
 * notification and one refresh.
 */
const pending = { events: [] as WorkspaceEvent[], keys: new Set<string>(), timer: 0 };
const pause = 250;

function collect(event: WorkspaceEvent, queries: QueryClient): void {
  pending.events.push(event);
  for (const [pattern, keys] of affected) if (pattern.test(event.name)) for (const key of keys) pending.keys.add(key);
  pending.timer ||= window.setTimeout(() => {
    const { events, keys } = pending;
    discard();
    all = [...all, ...events].slice(-limit);
    if (keys.delete("conversations")) refreshConversations(queries);
    refresh(queries, keys);
    notify();
  }, pause);
}

function discard(): void {
  clearTimeout(pending.timer);
  Object.assign(pending, { events: [], keys: new Set(), timer: 0 });
}

/** Follows the events of a workspace until it is called again, for another one or for none. */
export function follow(workspace: string | null, queries: QueryClient): void {
  running?.abort();
  discard();
  all = [];
  failures = 0;
  connection = "connecting";
  if (workspace === null) return;
  running = new AbortController();
  void run(running.signal, workspace, queries);
}

async function run(signal: AbortSignal, workspace: string, queries: QueryClient): Promise<void> {
  let seq = 0;
  while (!signal.aborted) {
    try {
      await readEvents("/v1/events", { signal, headers: { "X-Workspace-Id": workspace } }, (event) => {
        if (event.name === "heartbeat") return;
        const data = (event.data ?? {}) as Record<string, unknown>;
        const at = typeof data.timestamp === "string" ? data.timestamp : new Date().toISOString();
        collect({ seq: ++seq, name: event.name, at, data }, queries);
      }, () => {
        // Nobody repeats what happened before the stream was open, first or again: what was asked for until then is
        // asked for once more.
        refreshAll(queries, (query) => query.queryKey[0] !== "conversations");
        refreshConversations(queries);
        failures = 0;
        setConnection("open");
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return;
    }
    if (signal.aborted) return;
    failures++;
    if (failures > 1) setConnection("lost");
    await new Promise((resolve) => setTimeout(resolve, Math.min(250 * 2 ** failures, 8000) * (0.75 + Math.random() / 2)));
  }
}
