import { useSyncExternalStore } from "react";
import { toast } from "../ui/Toast";

const key = "ropewalk.notify";
const readers = new Set<() => void>();

let known: boolean | undefined;

/** Whether the person asked for notifications in this browser, and the browser allows them. It is slow to answer, so it is asked once. */
const isOn = () =>
  (known ??= "Notification" in window && Notification.permission === "granted" && localStorage.getItem(key) === "on");

const subscribe = (reader: () => void) => {
  readers.add(reader);
  return () => readers.delete(reader);
};

export const useNotifications = () => useSyncExternalStore(subscribe, isOn);

/** Turns notifications on, after asking the browser for permission if necessary, or off. */
export async function switchNotifications(on: boolean): Promise<void> {
  if (!on) localStorage.removeItem(key);
  else if (!("Notification" in window)) toast("This browser does not support notifications.", true);
  else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(key, "on");
  else
    toast("The browser does not allow notifications from this page. Change that in its settings for this site.", true);
  known = undefined;
  readers.forEach((reader) => reader());
}

/** Announces something in a hidden page: in its title, and with a notification if the person asked for them. */
export function notifyHidden(text: string): void {
  if (!document.hidden) return;
  const { title } = document;
  document.title = `${text} · ${title}`;
  const restore = () => {
    document.title = title;
  };
  document.addEventListener("visibilitychange", restore, { once: true });
  if (isOn()) new Notification(text).onclick = () => window.focus();
}
