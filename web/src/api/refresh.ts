import type { QueryClient } from "@tanstack/react-query";

/**
 * Makes the cached answers of these keys old and asks again for those in use. A first answer that is still on
 * its way is given up: it may be older than the change, and an invalidation alone would join it.
 */
export function refresh(queries: QueryClient, keys: Iterable<string>): void {
  for (const key of keys) void again(queries, [key]);
}

/** The same for every cached answer. */
export const refreshAll = (queries: QueryClient): void => void again(queries);

async function again(queries: QueryClient, queryKey?: string[]): Promise<void> {
  await queries.cancelQueries({ queryKey, predicate: (query) => query.state.data === undefined });
  await queries.invalidateQueries({ queryKey });
}
