/** The maximum number of messages that a view may send in a second. A view that reports its size in every frame sends 60. */
const mostInASecond = 250;
/** The maximum total number of messages that may bypass the proxy. A well-behaved view sends none. */
const mostPastTheProxy = 100;

/** Reports whether a message came from this frame or a frame inside it. */
function inside(source: Window | null, frame: Window | null): boolean {
  for (let depth = 0; source !== null && depth < 10; depth++) {
    if (source === frame) return true;
    if (source === source.parent) return false;
    source = source.parent;
  }
  return true; // no view needs frames nested this deeply
}

/** Calls flooded once if a view sends more messages than the page can handle, and drops all further messages. The
 * proxy counts the messages that it forwards and reports when there are too many. This function counts the messages
 * that a view sends directly to the page. */
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
