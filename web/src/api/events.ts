import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { api, eventStream } from "./client";
import { ApiError } from "./http";
import { dropConversation, refreshConversations } from "./conversationPages";
import { refresh, refreshAll } from "./refresh";
import { readEvents, type ServerEvent } from "./sse";

/** An event of the workspace. seq is its number on this page. */
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
let seq = 0;
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

/** The queries that an event invalidates. */
const affected: [RegExp, string[]][] = [
  [/^bundle\.|^app\./, ["apps", "app", "health", "tools", "bootstrap"]],
  [/^app\.(permissions|denied)/, ["permissions"]],
  [/^account\./, ["accounts"]],
  [/^data\.changed/, ["data"]],
  [/^conversation\./, ["conversations", "conversation"]],
  [/^conversation\.deleted/, ["history"]],
  [/^conversation\.queued/, ["queued", "history"]],
  [/^approval|^pin|^tool/, ["approvals", "always", "pins", "tools"]],
];

/** Events since the last notification. Many events at once, for example when a thousand apps start, cause one
 * notification and one refresh. */
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

/** A message from the page that has the stream to the browser's other pages, or a request for its state. */
type Shared = { event: ServerEvent } | { connection: Connection; fresh?: boolean } | { ask: true };

const patience = 10_000; // how long a hidden page keeps following the stream

/** Follows the events of a workspace until it is called again. The pages of a browser share one stream, because over
 * HTTP/1.1 a browser opens only six connections to a server. A hidden page leaves the stream and catches up when it
 * becomes visible. */
export function follow(place: { workspace: string; user: string } | null, queries: QueryClient): void {
  running?.abort();
  discard();
  all = [];
  connection = "connecting";
  if (place === null) return;
  running = new AbortController();
  const { signal } = running;
  let seen: AbortController | null = null;
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(leave, patience);
    else if (!seen) {
      seen = new AbortController();
      void share(seen.signal, place, queries);
    }
  };
  const leave = () => {
    clearTimeout(timer);
    seen?.abort();
    seen = null;
  };
  document.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", leave);
  look();
}

async function share(
  signal: AbortSignal,
  { workspace, user }: { workspace: string; user: string },
  queries: QueryClient,
): Promise<void> {
  let current = false; // whether this page has fetched the state from before it joined
  const receive = (shared: Shared) => {
    if (signal.aborted) return;
    if ("event" in shared) return accept(shared.event, queries);
    if (!("connection" in shared)) return;
    if (shared.connection === "open" && (shared.fresh || !current)) {
      // The stream does not repeat events from before it was opened, so everything is fetched again.
      refreshAll(queries, (query) => query.queryKey[0] !== "conversations");
      refreshConversations(queries);
      current = true;
    }
    setConnection(shared.connection);
  };
  if (!("locks" in navigator)) return await stream(signal, workspace, queries, receive); // browsers offer locks only over HTTPS
  const name = `ropewalk events of ${user} in ${workspace}`;
  const channel = new BroadcastChannel(name);
  let leads = false;
  channel.onmessage = ({ data }: MessageEvent<Shared>) => {
    if ("ask" in data && leads) channel.postMessage({ connection } satisfies Shared);
    else receive(data);
  };
  signal.addEventListener("abort", () => channel.close());
  channel.postMessage({ ask: true } satisfies Shared);
  await navigator.locks
    .request(name, { signal }, async () => {
      leads = true;
      await stream(signal, workspace, queries, (shared) => {
        receive(shared);
        if (!signal.aborted) channel.postMessage(shared);
      });
    })
    .catch(() => undefined); // aborted while waiting for the lock
}

function accept({ name, data: raw }: ServerEvent, queries: QueryClient): void {
  const data = (raw ?? {}) as Record<string, unknown>;
  if (name === "conversation.deleted") dropConversation(queries, String(data.id));
  const at = typeof data.timestamp === "string" ? data.timestamp : new Date().toISOString();
  collect({ seq: ++seq, name, at, data }, queries);
}

async function stream(
  signal: AbortSignal,
  workspace: string,
  queries: QueryClient,
  tell: (shared: Shared) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const headers = { ...eventStream.headers, "X-Workspace-Id": workspace };
      await readEvents(
        api.GET("/v1/events", { ...eventStream, signal, headers }),
        (event) => {
          if (event.name !== "heartbeat") tell({ event });
        },
        () => {
          failures = 0;
          tell({ connection: "open", fresh: true });
        },
      );
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && error.status === 401)) return;
      if (error instanceof ApiError && [403, 404].includes(error.status)) refresh(queries, ["bootstrap"]); // the person's role may have changed
    }
    if (signal.aborted) return;
    failures++;
    if (failures > 1) tell({ connection: "lost" });
    await pauseFor(Math.min(250 * 2 ** failures, 8000) * (0.75 + Math.random() / 2), signal);
  }
}

const pauseFor = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
