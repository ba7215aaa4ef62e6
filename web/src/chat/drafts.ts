import { useCallback, useEffect, useRef, useState } from "react";
import type { Schemas } from "../api/client";
import { useSession } from "../api/session";
import { draftPrefix, fileStore } from "../api/leave";
import type { Attachment } from "./run";

/** What a person has written and chosen in a conversation, but not sent. */
export interface Draft {
  text: string;
  files: Attachment[];
  /** "" for the server's default. */
  model: string;
  /** The apps that are switched off in a new chat. */
  off: string[];
}

const empty: Draft = { text: "", files: [], model: "", off: [] };

function stored(key: string): Partial<Draft> {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<Draft>;
  } catch {
    return {};
  }
}

function keep(key: string, { text, model, off }: Draft): void {
  try {
    if (text || model || off.length > 0) localStorage.setItem(key, JSON.stringify({ text, model, off }));
    else localStorage.removeItem(key);
  } catch {
    // Without storage the draft lasts as long as the page.
  }
}

/**
 * Returns the draft of a conversation. It survives reloads and restarts of the browser. After sending, it stays stored until the
 * server has the message.
 */
export function useDraft(id: string | undefined) {
  const { user, workspace } = useSession();
  const prefix = `${draftPrefix}${user.id} ${workspace.id} `;
  const key = prefix + (id ?? "new");
  const [draft, setDraft] = useState<Draft>(() => ({ ...empty, ...stored(key) }));
  const latest = useRef(draft);
  const files = useRef(draft.files);
  const change = useCallback((to: Partial<Draft>) => {
    latest.current = { ...latest.current, ...to };
    setDraft(latest.current);
  }, []);
  /** Stores the draft. A new chat passes the ID that it got; the next new chat begins with its model. */
  const store = useCallback(
    (as = id) => {
      const now = latest.current;
      const to = prefix + (as ?? "new");
      if (to !== key) keep(key, { ...empty, model: now.model });
      keep(to, now);
      if (files.current === now.files) return;
      files.current = now.files;
      void fileStore("readwrite", (all) => {
        if (to !== key) all.delete(key);
        return now.files.length > 0 ? all.put(now.files, to) : all.delete(to);
      });
    },
    [prefix, key, id],
  );
  useEffect(() => {
    void fileStore<Attachment[]>("readonly", (all) => all.get(key)).then((before) => {
      if (!before?.length || latest.current.files.length > 0) return;
      files.current = before;
      change({ files: before });
    });
  }, [key, change]);
  const edit = useCallback(
    (to: Partial<Draft> | ((draft: Draft) => Partial<Draft>)) => {
      change(typeof to === "function" ? to(latest.current) : to);
      store();
    },
    [change, store],
  );
  /** Clears the shown draft. The stored one stays until the server has the message. */
  const clear = useCallback(() => change({ ...empty, model: latest.current.model }), [change]);
  return { draft, edit, clear, store };
}

/** Returns a draft with a withdrawn message before what has been written since, so that it can be sent again. */
export function withWithdrawn(
  now: Draft,
  was: { content: string; attachments?: Schemas["Attachment"][] },
): Partial<Draft> {
  return {
    text: [was.content, now.text].filter(Boolean).join("\n"),
    files: [...((was.attachments ?? []) as Attachment[]), ...now.files],
  };
}
