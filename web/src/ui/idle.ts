import { useSyncExternalStore } from "react";

const whenIdle = (done: () => void, timeout: number) =>
  void ("requestIdleCallback" in globalThis ? requestIdleCallback(done, { timeout }) : setTimeout(done));

/** Something that becomes true once, a while after the first reader mounted. */
function once(wait: (done: () => void) => void): () => boolean {
  let reached = false;
  const readers = new Set<() => void>();
  const subscribe = (reader: () => void): (() => void) => {
    readers.add(reader);
    if (!reached && readers.size === 1) {
      wait(() => {
        reached = true;
        readers.forEach((each) => each());
      });
    }
    return () => void readers.delete(reader);
  };
  return () => useSyncExternalStore(subscribe, () => reached);
}

/** Whether the page has been painted, so that the person can begin: what is beside the screen comes then. */
export const useShown = once((done) =>
  document.hidden ? whenIdle(done, 500) : requestAnimationFrame(() => whenIdle(done, 500)),
);

/** Whether the page is complete and has nothing to do: what may not be needed at all waits until then. */
export const useIdle = once((done) => setTimeout(() => whenIdle(done, 2_000), 300));
