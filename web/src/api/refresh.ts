import type { Query, QueryClient } from "@tanstack/react-query";

/**
 * Makes the cached answers of these keys old and asks again for those in use. A first answer that is still on
 * its way is given up: it may be older than the change, and an invalidation alone would join it.
 */
export function refresh(
  queries: QueryClient,
  keys: Iterable<string>,
  which: (query: Query) => boolean = () => true,
): void {
  for (const key of keys) void again(queries, which, [key]);
}

/** The same for every cached answer that this holds for. */
export const refreshAll = (queries: QueryClient, which: (query: Query) => boolean): void => void again(queries, which);

async function again(queries: QueryClient, which: (query: Query) => boolean, queryKey?: string[]): Promise<void> {
  await queries.cancelQueries({ queryKey, predicate: (query) => query.state.data === undefined && which(query) });
  await queries.invalidateQueries({ queryKey, predicate: which });
}
