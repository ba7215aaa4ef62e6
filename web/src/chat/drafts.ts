import { useCallback, useEffect, useRef, useState } from "react";
import { useSession } from "../api/session";
import { draftPrefix, fileStore } from "../api/leave";
import { newChat } from "../api/tab";
import type { Ask, Attachment } from "./run";

/** The text, files and choices of a message that a person has not sent yet. */
export interface Draft {
  text: string;
  files: Attachment[];
  /** "" means the server's default model. */
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
    // Without storage, the draft is lost when the page is closed.
  }
}

/** Returns what the keys of a person's drafts in the workspace begin with. The ID of the conversation follows, or newChat(). */
export function useDraftPrefix(): string {
  const { user, workspace } = useSession();
  return `${draftPrefix}${user.id} ${workspace.id} `;
}

/** Removes the stored draft of a message that the server has received, unless something else has been written since. */
export function dropSent(key: string, message: string): void {
  const before = { ...empty, ...stored(key) };
  if (before.text.trim() !== message) return;
  keep(key, { ...empty, model: before.model });
  void fileStore("readwrite", (all) => all.delete(key));
}

/** Returns the draft of a conversation. It survives reloads and restarts of the browser. It stays stored until the
 * server has received the message, but a message that is being sent is not shown as a draft. */
export function useDraft(id: string | undefined, sending?: Ask) {
  const prefix = useDraftPrefix();
  const key = useRef(prefix + (id ?? newChat()));
  const [draft, setDraft] = useState<Draft>(() => {
    const before = { ...empty, ...stored(prefix + (id ?? newChat())) };
    return before.text.trim() === sending?.message ? { ...empty, model: before.model } : before;
  });
  const [sent] = useState(sending?.attachments);
  const latest = useRef(draft);
  const files = useRef(draft.files);
  const change = useCallback((to: Partial<Draft>) => {
    latest.current = { ...latest.current, ...to };
    setDraft(latest.current);
  }, []);
  /** Stores the draft. A new chat passes the ID that it got. The next new chat starts with the same model. */
  const store = useCallback(
    (as?: string) => {
      const from = key.current;
      if (as) key.current = prefix + as;
      const to = key.current;
      if (to !== from) {
        keep(from, { ...empty, model: latest.current.model });
        change({ model: "", off: [] }); // they are now stored with the conversation
      }
      const now = latest.current;
      keep(to, now);
      if (to === from && files.current === now.files) return;
      files.current = now.files;
      void fileStore("readwrite", (all) => {
        if (to !== from) all.delete(from);
        return now.files.length > 0 ? all.put(now.files, to) : all.delete(to);
      });
    },
    [prefix, change],
  );
  useEffect(() => {
    void fileStore<Attachment[]>("readonly", (all) => all.get(key.current)).then((before) => {
      if (!before?.length || latest.current.files.length > 0) return;
      files.current = before;
      change({ files: before.filter((f) => !sent?.some((s) => s.name === f.name && s.data === f.data)) });
    });
  }, [sent, change]);
  const edit = useCallback(
    (to: Partial<Draft> | ((draft: Draft) => Partial<Draft>)) => {
      change(typeof to === "function" ? to(latest.current) : to);
      store();
    },
    [change, store],
  );
  /** Clears the visible draft. The stored draft stays until the server has received the message. */
  const clear = useCallback(() => change({ ...empty, model: latest.current.model }), [change]);
  return { draft, edit, clear, store };
}

/** Returns a draft that starts with a withdrawn message, so that it can be sent again. Text written since then follows. */
export function withWithdrawn(now: Draft, was: { content: string; attachments?: Attachment[] }): Partial<Draft> {
  return {
    text: [was.content, now.text].filter(Boolean).join("\n"),
    files: [...(was.attachments ?? []), ...now.files],
  };
}
