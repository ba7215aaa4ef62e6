import { startTransition, useEffect, useState } from "react";
import { useShown } from "../ui/idle";

type Sidebars = typeof import("./sidebarParts");
let sidebars: Sidebars | undefined;

/** Loads the sidebars. */
export async function loadSidebars(): Promise<void> {
  sidebars ??= await import("./sidebarParts");
}

async function loadUntilThere(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await loadSidebars();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 2_000)); // retry while the server is unreachable
    }
  }
}

/** Returns the navigation and the list of conversations once they are loaded. On a slow processor, the chat is usable before then. */
export function useSidebars(): Sidebars | undefined {
  const [loaded, setLoaded] = useState(sidebars);
  const shown = useShown();
  useEffect(() => {
    if (!shown || loaded) return;
    const abort = new AbortController();
    void loadUntilThere(abort.signal).then(() => startTransition(() => setLoaded(sidebars)));
    return () => abort.abort();
  }, [shown, loaded]);
  return loaded;
}
