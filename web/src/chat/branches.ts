import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, take, type Schemas } from "../api/client";
import { conversationQuery } from "../api/conversations";
import { ApiError } from "../api/http";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";

/** The versions of one message. Each version is in its own conversation, which has the same messages up to this one.
 * The versions are stored in the metadata of all these conversations. */
export interface Branching {
  /** The position of the message in its conversation. */
  at: number;
  /** The conversations, oldest first. */
  ids: string[];
  /** If this conversation was forked at a later message, the conversation whose version it shares. */
  self?: string;
}

type Conversation = Schemas["Conversation"];

/** Reads the branchings in a conversation's metadata. Other programs can write to it. */
export function branchingsOf(metadata: Record<string, unknown> | undefined): Branching[] {
  const all = Array.isArray(metadata?.branches) ? (metadata.branches as Partial<Branching>[]) : [];
  return all.filter((b): b is Branching => Number.isInteger(b.at) && Array.isArray(b.ids) && b.ids.length > 1);
}

/** Returns the branchings of a conversation that gets another version of the message at this position, and those of the new conversation. */
export function branch(
  id: string,
  all: Branching[],
  at: number,
  made: string,
): { old: Branching[]; fresh: Branching[] } {
  const before = all.find((b) => b.at === at);
  const ids = [...(before?.ids ?? [id]), made];
  const others = all.filter((b) => b.at !== at);
  const inherited = others.filter((b) => b.at < at).map((b) => ({ ...b, self: b.self ?? id }));
  return { old: [...others, { ...before, at, ids }], fresh: [...inherited, { at, ids }] };
}

const read = (id: string) => take(api.GET("/v1/conversations/{id}", { params: { path: { id } } }));
const write = ({ id, metadata }: Conversation, branches: Branching[]) =>
  api.PATCH("/v1/conversations/{id}", { params: { path: { id } }, body: { metadata: { ...metadata, branches } } });

/** Returns a function that records that a new conversation has another version of a message. */
export function useRecordBranch(): (id: string, at: number, made: string) => Promise<void> {
  const queries = useQueryClient();
  return useCallback(
    async (id, at, made) => {
      const [here, fresh] = await Promise.all([read(id), read(made)]);
      const changed = branch(id, branchingsOf(here.metadata), at, made);
      await Promise.all([write(here, changed.old), write(fresh, changed.fresh)]);
      const ids = changed.old.find((b) => b.at === at)!.ids;
      for (const other of ids.filter((one) => one !== id && one !== made)) {
        const sibling = await read(other).catch(() => undefined); // the conversation may have been deleted
        if (!sibling) continue;
        const rest = branchingsOf(sibling.metadata).filter((b) => b.at !== at);
        await write(sibling, [...rest, { at, ids }]);
      }
      refresh(queries, ["conversation"]);
    },
    [queries],
  );
}

/** The conversations with the versions of a message, and the index of the one that is shown. */
export interface Versions {
  ids: string[];
  here: number;
}

/** Returns the versions of a conversation's messages by position. Versions in deleted conversations are left out. */
export function useVersions(id: string | undefined): ReadonlyMap<number, Versions> {
  const { workspace } = useSession();
  const query = (of: string | undefined) => conversationQuery(workspace.id, of);
  const all = branchingsOf(useQuery(query(id)).data?.metadata);
  const ids = [...new Set(all.flatMap((b) => b.ids))];
  const found = useQueries({ queries: ids.map(query) });
  const isGone = (one: string) => {
    const { error } = found[ids.indexOf(one)] ?? {};
    return one !== id && error instanceof ApiError && error.status === 404;
  };
  return new Map(
    all.flatMap(({ at, ids: of, self = id }): [number, Versions][] => {
      const left = of.filter((one) => !isGone(one) || one === self);
      const here = left.indexOf(self ?? "");
      return left.length > 1 && here >= 0 ? [[at, { ids: left, here }]] : [];
    }),
  );
}
