/** The most messages of a view in one second. One that reports its size in each frame sends 60. */
const mostInASecond = 250;
/** The most that may come past the proxy, ever: nothing that a view has to say does. */
const mostPastTheProxy = 100;

/** Whether a message came from a frame inside of this one; a frame that is gone already is nobody's. */
function inside(source: Window | null, frame: Window | null): boolean {
  for (let depth = 0; source !== null && depth < 10; depth++) {
    if (source === frame) return true;
    if (source === source.parent) return false;
    source = source.parent;
  }
  return true; // deeper than any view needs
}

/**
 * Calls flooded once, when a view sends more messages than the page could answer and stay usable. The proxy counts what it passes
 * on, and says so; here the messages are counted that a view sends to the page itself. Those after that have no effect.
 */
export function watchFlood(frame: HTMLIFrameElement, flooded: () => void): () => void {
  let since = 0;
  let inThisSecond = 0;
  let pastTheProxy = 0;
  let over = false;
  const listen = (event: MessageEvent) => {
    if (event.source !== null && event.source === frame.contentWindow) {
      const now = performance.now();
      if (now - since > 1_000) [since, inThisSecond] = [now, 0];
      over ||= ++inThisSecond > mostInASecond || event.data?.method === "ui/notifications/sandbox-flooded";
    } else if (inside(event.source as Window | null, frame.contentWindow)) {
      over ||= ++pastTheProxy > mostPastTheProxy;
    } else return;
    if (!over) return;
    event.stopImmediatePropagation();
    flooded();
    flooded = () => undefined;
  };
  window.addEventListener("message", listen);
  return () => window.removeEventListener("message", listen);
}
