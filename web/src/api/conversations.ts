import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, take, type Schemas } from "./client";
import { conversationPage, dropConversation, refreshConversations, type ConversationPages } from "./conversationPages";
import { useSession } from "./session";

const none: string[] = [];
const onePage = ({ state }: { state: { data?: ConversationPages } }) => (state.data?.pages.length ?? 0) < 2;

export function useConversations(search: string) {
  const { workspace } = useSession();
  return useInfiniteQuery({
    queryKey: ["conversations", workspace.id, search],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) => conversationPage(search, pageParam),
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    // Otherwise every loaded page would be fetched again, and there may be a hundred.
    refetchOnWindowFocus: onePage,
    refetchOnReconnect: onePage,
    refetchOnMount: onePage,
  });
}

const answerAwaited = 10 * 60_000;

/** Returns the messages of a conversation. They are polled while the last message has no answer and this page does not follow the run. */
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

/** The query for a conversation without its messages. */
export const conversationQuery = (workspace: string, id: string | undefined) => ({
  enabled: id !== undefined,
  queryKey: ["conversation", workspace, id],
  staleTime: 60_000,
  queryFn: () => take(api.GET("/v1/conversations/{id}", { params: { path: { id: id! } } })),
});

/** Returns the apps that are switched off in a conversation, and a function that changes them. */
export function useDisabledApps(id: string | undefined): [string[], (apps: string[]) => void] {
  const { workspace } = useSession();
  const queries = useQueryClient();
  const query = conversationQuery(workspace.id, id);
  const disabled = useQuery(query).data?.disabledApps ?? none;
  const { mutate } = useMutation({
    mutationFn: (disabledApps: string[]) =>
      take(api.PATCH("/v1/conversations/{id}", { params: { path: { id: id! } }, body: { disabledApps } })),
    onMutate: (disabledApps) =>
      queries.setQueryData<Schemas["Conversation"]>(query.queryKey, (before) => before && { ...before, disabledApps }),
    onSettled: () => queries.invalidateQueries({ queryKey: query.queryKey }),
  });
  return [disabled, mutate];
}

/** Returns the message that is queued until the current run ends. */
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

/** Creates a conversation with the first messages of another one. */
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

const mostAtOnce = 100; // conversations in one request

/** Returns the actions on conversations. */
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
  const removeAll = useMutation({
    ...options,
    mutationFn: async (ids: string[]) => {
      for (let from = 0; from < ids.length; from += mostAtOnce) {
        const some = ids.slice(from, from + mostAtOnce);
        await take(api.POST("/v1/conversations/delete", { body: { ids: some } }));
        for (const id of some) dropConversation(queries, id);
      }
    },
  });
  return { rename, remove, removeAll, fork: useFork() };
}
