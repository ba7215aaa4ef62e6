import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, take } from "./client";
import { conversationPage, dropConversation, refreshConversations, type ConversationPages } from "./conversationPages";
import { useSession } from "./session";

const onePage = ({ state }: { state: { data?: ConversationPages } }) => (state.data?.pages.length ?? 0) < 2;

export function useConversations(search: string) {
  const { workspace } = useSession();
  return useInfiniteQuery({
    queryKey: ["conversations", workspace.id, search],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => conversationPage(search, pageParam),
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    // All pages would be asked for again, which may be a hundred.
    refetchOnWindowFocus: onePage,
    refetchOnReconnect: onePage,
    refetchOnMount: onePage,
  });
}

const answerAwaited = 10 * 60_000;

/** The messages of a conversation. While the last one has no answer, and none comes here, it is asked for again. */
export function useHistory(id: string | undefined, answering: boolean) {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["history", workspace.id, id],
    enabled: id !== undefined,
    refetchInterval: ({ state }) => {
      const last = state.data?.at(-1);
      return !answering && last?.role === "user" && Date.now() - Date.parse(last.timestamp) < answerAwaited
        ? 2_000
        : false;
    },
    queryFn: async () =>
      (await take(api.GET("/v1/conversations/{id}/history", { params: { path: { id: id! } } }))).messages,
  });
}

/** The message of a conversation that waits for the end of the run. */
export function useQueued(id: string | undefined) {
  const { workspace } = useSession();
  return useQuery({
    queryKey: ["queued", workspace.id, id],
    enabled: id !== undefined,
    queryFn: async () =>
      (await take(api.GET("/v1/conversations/{id}/queue", { params: { path: { id: id! } } }))).queued,
  }).data;
}

const useOptions = () => {
  const queries = useQueryClient();
  return { queries, options: { onSettled: () => refreshConversations(queries) } };
};

/** Begins a conversation that has the first messages of another one. */
export function useFork() {
  const { options } = useOptions();
  return useMutation({
    ...options,
    mutationFn: ({ id, atMessage }: { id: string; atMessage?: number }) =>
      take(
        api.POST("/v1/conversations/{id}/fork", {
          params: { path: { id } },
          body: atMessage === undefined ? {} : { atMessage },
        }),
      ),
  });
}

/** What can be done with a conversation besides going on in it. */
export function useConversationActions() {
  const { queries, options } = useOptions();
  const rename = useMutation({
    ...options,
    mutationFn: ({ id, title }: { id: string; title: string }) =>
      take(api.PATCH("/v1/conversations/{id}", { params: { path: { id } }, body: { title } })),
  });
  const remove = useMutation({
    ...options,
    onSuccess: (_: unknown, id: string) => dropConversation(queries, id),
    mutationFn: (id: string) => take(api.DELETE("/v1/conversations/{id}", { params: { path: { id } } })),
  });
  return { rename, remove, fork: useFork() };
}
