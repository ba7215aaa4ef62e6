import type { InfiniteData, Query, QueryClient } from "@tanstack/react-query";
import { api, take } from "./client";
import { refresh } from "./refresh";

export const conversationPage = (search: string, cursor?: string) =>
  take(
    api.GET("/v1/conversations", {
      params: { query: { limit: cursor ? 100 : 50, cursor, search: search || undefined } },
    }),
  );

type Page = Awaited<ReturnType<typeof conversationPage>>;
export type ConversationPages = InfiniteData<Page, string | undefined>;

/** Returns the pages with a newer first page. Conversations that have left the first page move to the second. A conversation that is missing from the new first page was deleted if it is newer than the last one on that page. */
export function withFirst({ pages, pageParams }: ConversationPages, first: Page): ConversationPages {
  const shown = new Set(first.conversations.map((c) => c.id));
  const last = first.conversations.at(-1)?.updatedAt ?? "";
  const [before, ...rest] = pages;
  const moved = before?.conversations.filter((c) => c.updatedAt <= last) ?? [];
  return {
    pageParams,
    pages: [
      first,
      ...rest.map((page, i) => ({
        ...page,
        conversations: [...(i === 0 ? moved : []), ...page.conversations].filter((c) => !shown.has(c.id)),
      })),
    ],
  };
}

const severalPages = (query: Query) => ((query.state.data as ConversationPages | undefined)?.pages.length ?? 0) > 1;
const running = new WeakMap<Query, { again: boolean }>();

/** Fetches only the first page of a list again. It has the most recent conversations. */
async function renewFirst(queries: QueryClient, query: Query): Promise<void> {
  const other = running.get(query);
  if (other) {
    other.again = true;
    return;
  }
  const mine = { again: false };
  running.set(query, mine);
  try {
    do {
      mine.again = false;
      const first = await conversationPage(String(query.queryKey[2] ?? ""));
      while (query.state.fetchStatus === "fetching") await query.promise?.catch(() => undefined); // otherwise, a fetch of another page would overwrite the result
      queries.setQueryData<ConversationPages>(query.queryKey, (data) => data && withFirst(data, first));
    } while (mine.again);
  } catch {
    await queries.invalidateQueries({ queryKey: query.queryKey, refetchType: "none" });
  } finally {
    running.delete(query);
  }
}

/** Refreshes the lists of conversations. If several pages of a list are loaded, only the first is fetched again. */
export function refreshConversations(queries: QueryClient): void {
  const cache = queries.getQueryCache();
  for (const query of cache.findAll({ queryKey: ["conversations"], predicate: severalPages })) {
    if (query.isActive()) void renewFirst(queries, query);
    else cache.remove(query);
  }
  refresh(queries, ["conversations"], (query) => !severalPages(query));
}

/** Removes a conversation from all lists. */
export function dropConversation(queries: QueryClient, id: string): void {
  queries.setQueriesData<ConversationPages>(
    { queryKey: ["conversations"] },
    (data) =>
      data && {
        ...data,
        pages: data.pages.map((page) => ({ ...page, conversations: page.conversations.filter((c) => c.id !== id) })),
      },
  );
}
