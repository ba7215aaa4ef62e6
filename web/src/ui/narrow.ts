import { useSyncExternalStore } from "react";

/** The width below which the style sheets use the phone layout. */
const query = matchMedia("(max-width: 860px)");

function subscribe(reader: () => void): () => void {
  query.addEventListener("change", reader);
  return () => query.removeEventListener("change", reader);
}

/** Reports whether the page has the phone layout. */
export const isNarrow = () => query.matches;
export const useNarrow = () => useSyncExternalStore(subscribe, isNarrow);
