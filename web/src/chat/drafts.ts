import { useCallback, useEffect, useRef, useState } from "react";
import { useSession } from "../api/session";
import { draftPrefix, fileStore } from "../api/leave";
import type { Attachment } from "./run";

/** What a person has written and chosen in a conversation, and not sent. */
export interface Draft {
  text: string;
  files: Attachment[];
  /** "" is the model of the server. */
  model: string;
}

const empty: Draft = { text: "", files: [], model: "" };

function stored(key: string): Partial<Draft> {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<Draft>;
  } catch {
    return {};
  }
}

function keep(key: string, { text, model }: Draft): void {
  try {
    if (text || model) localStorage.setItem(key, JSON.stringify({ text, model }));
    else localStorage.removeItem(key);
  } catch {
    // The browser keeps nothing here: the draft lasts as long as the page.
  }
}

/**
 * The draft of a conversation. It survives a reload, the browser and a change of screens, and stays stored after it was sent
 * until the server has it.
 */
export function useDraft(id: string | undefined) {
  const { user, workspace } = useSession();
  const key = `${draftPrefix}${user.id} ${workspace.id} ${id ?? "new"}`;
  const [draft, setDraft] = useState<Draft>(() => ({ ...empty, ...stored(key) }));
  const latest = useRef(draft);
  const files = useRef(draft.files);
  const change = useCallback((to: Partial<Draft>) => {
    latest.current = { ...latest.current, ...to };
    setDraft(latest.current);
  }, []);
  const store = useCallback(() => {
    keep(key, latest.current);
    if (files.current === latest.current.files) return;
    files.current = latest.current.files;
    void fileStore("readwrite", (all) => (files.current.length > 0 ? all.put(files.current, key) : all.delete(key)));
  }, [key]);
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
  /** Empties what is shown; what is stored stays until the server has it. */
  const clear = useCallback(() => change({ text: "", files: [] }), [change]);
  return { draft, edit, clear, store };
}
