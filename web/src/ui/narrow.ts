import { useSyncExternalStore } from "react";

/** The width from which the layouts of the style sheets are those of a phone. */
const query = matchMedia("(max-width: 860px)");

function subscribe(reader: () => void): () => void {
  query.addEventListener("change", reader);
  return () => query.removeEventListener("change", reader);
}

/** Whether the page is as narrow as on a phone. */
export const isNarrow = () => query.matches;
export const useNarrow = () => useSyncExternalStore(subscribe, isNarrow);
