import type { KeyboardEvent } from "react";

export const onlyTouch = matchMedia("(hover: none)");

/** Reports whether a key sends the message. On-screen keyboards have no Shift+Enter, so there Enter starts a new line. */
export const sendsMessage = (e: KeyboardEvent) =>
  e.key === "Enter" && !e.nativeEvent.isComposing && (e.ctrlKey || e.metaKey || (!e.shiftKey && !onlyTouch.matches));
