import { useSyncExternalStore } from "react";

/** Resolves in the page's next task, so that input and frames are handled before the caller continues. */
export const nextTask = () =>
  new Promise<void>((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });

const whenIdle = (done: () => void, timeout: number) =>
  void ("requestIdleCallback" in globalThis ? requestIdleCallback(done, { timeout }) : setTimeout(done));

/** Returns a hook whose value becomes true once, some time after the first component using it has been mounted. */
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

/** Reports whether the page has been painted and is usable. The sidebars are loaded at that point. */
export const useShown = once((done) =>
  document.hidden ? whenIdle(done, 500) : requestAnimationFrame(() => whenIdle(done, 500)),
);

/** Reports whether the page is complete and idle. Parts that may never be needed are loaded at that point. */
export const useIdle = once((done) => setTimeout(() => whenIdle(done, 2_000), 300));
