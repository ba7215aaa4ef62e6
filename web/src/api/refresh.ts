import type { Query, QueryClient } from "@tanstack/react-query";

/** Invalidates the queries with these keys and refetches those in use. An initial fetch that is still in progress is
 * cancelled, because its response may be older than the change and invalidation alone would wait for it. */
export function refresh(
  queries: QueryClient,
  keys: Iterable<string>,
  which: (query: Query) => boolean = () => true,
): void {
  for (const key of keys) void again(queries, which, [key]);
}

/** Like refresh, for every query for which `which` returns true. */
export const refreshAll = (queries: QueryClient, which: (query: Query) => boolean): void => void again(queries, which);

async function again(queries: QueryClient, which: (query: Query) => boolean, queryKey?: string[]): Promise<void> {
  await queries.cancelQueries({ queryKey, predicate: (query) => query.state.data === undefined && which(query) });
  await queries.invalidateQueries({ queryKey, predicate: which });
}
