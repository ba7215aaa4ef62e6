/** Every shortcut, for the list that explains them. Ctrl means Command on a Mac. */
export const shortcuts: [keys: string, what: string][] = [
  ["Ctrl K", "Find a screen, a conversation or a command"],
  ["Ctrl Shift O", "Start a new chat"],
  ["Shift Esc", "Move to the message field"],
  ["Enter", "Send the message"],
  ["Shift Enter", "Start a new line in the message"],
  ["Esc", "Stop the answer, or close a dialog or menu"],
  ["Ctrl /", "Show this list"],
];

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Returns the keys with their names on this computer. */
export const keysHere = (keys: string) => (isMac ? keys.replace("Ctrl", "⌘") : keys);

/** The shortcuts that work on every screen. */
export type Shortcut = "find" | "new" | "write" | "help";

/** Returns the shortcut that was pressed. */
export function shortcutOf({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent): Shortcut | undefined {
  if (altKey) return undefined;
  if (key === "Escape") return shiftKey && !ctrlKey && !metaKey ? "write" : undefined;
  if (!ctrlKey && !metaKey) return undefined;
  if (key === "/") return "help";
  return { k: shiftKey ? undefined : "find", o: shiftKey ? "new" : undefined }[key.toLowerCase()] as
    Shortcut | undefined;
}

const opened = new Event("ropewalk:shortcuts");

/** Shows the list of shortcuts. */
export const showShortcuts = () => void document.dispatchEvent(opened);

/** Calls a function whenever the list of shortcuts should be shown, until the returned function is called. */
export function onShowShortcuts(show: () => void): () => void {
  document.addEventListener(opened.type, show);
  return () => document.removeEventListener(opened.type, show);
}
