import { startTransition, useEffect, useState } from "react";
import { useShown } from "../ui/idle";

type Sidebars = typeof import("./sidebarParts");
let sidebars: Sidebars | undefined;

/** Loads what is beside the screen, for a first render that has it. */
export async function loadSidebars(): Promise<void> {
  sidebars ??= await import("./sidebarParts");
}

async function loadUntilThere(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await loadSidebars();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 2_000)); // the server is away
    }
  }
}

/** What is beside the screen: the navigation and the conversations. On a slow processor the person can begin before it is there. */
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
