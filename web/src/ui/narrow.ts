import { useCallback, useSyncExternalStore } from "react";

// The style sheets use the same widths.
const narrow = matchMedia("(max-width: 860px)");
const listed = matchMedia("(min-width: 1081px)");

function useMedia(query: MediaQueryList): boolean {
  const subscribe = useCallback(
    (reader: () => void) => {
      query.addEventListener("change", reader);
      return () => query.removeEventListener("change", reader);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => query.matches);
}

/** Reports whether the page has the phone layout. */
export const isNarrow = () => narrow.matches;
export const useNarrow = () => useMedia(narrow);

/** Reports whether the list of conversations is shown next to the chat instead of opening on top of it. */
export const useListed = () => useMedia(listed);
