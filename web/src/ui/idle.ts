import { useSyncExternalStore } from "react";

let idle = false;
const readers = new Set<() => void>();

/** After the first frames, which take the longest on a slow processor, and when there is nothing else to do. */
function later(done: () => void): void {
  setTimeout(() => ("requestIdleCallback" in globalThis ? requestIdleCallback(done, { timeout: 2_000 }) : done()), 300);
}

function subscribe(reader: () => void): () => void {
  readers.add(reader);
  if (!idle && readers.size === 1) {
    later(() => {
      idle = true;
      readers.forEach((each) => each());
    });
  }
  return () => void readers.delete(reader);
}

/** Whether the page has been shown: what is not needed for that waits until then. */
export const useIdle = () => useSyncExternalStore(subscribe, () => idle);
