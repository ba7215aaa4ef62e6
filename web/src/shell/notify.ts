import { useSyncExternalStore } from "react";
import { toast } from "../ui/Toast";

const key = "ropewalk.notify";
const readers = new Set<() => void>();

/** Whether the browser allows notifications. Asking is slow, so the answer is cached until the browser reports a change. */
let allowed: boolean | undefined;

function isAllowed(): boolean {
  if (!("Notification" in window)) return false;
  const changed = () => {
    allowed = undefined;
    readers.forEach((reader) => reader());
  };
  navigator.permissions?.query({ name: "notifications" }).then(
    (status) => status.addEventListener("change", changed, { once: true }),
    () => undefined, // this browser does not report changes
  );
  return Notification.permission === "granted";
}

/** Reports whether the person has switched on notifications in this browser, in any tab, and the browser allows them. */
const isOn = () => localStorage.getItem(key) === "on" && (allowed ??= isAllowed());

const subscribe = (reader: () => void) => {
  readers.add(reader);
  addEventListener("storage", reader);
  return () => {
    readers.delete(reader);
    removeEventListener("storage", reader);
  };
};

export const useNotifications = () => useSyncExternalStore(subscribe, isOn);

/** Turns notifications on or off. Turning them on asks the browser for permission if necessary. */
export async function switchNotifications(on: boolean): Promise<void> {
  if (!on) localStorage.removeItem(key);
  else if (!("Notification" in window)) toast("This browser does not support notifications.", true);
  else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(key, "on");
  else
    toast(
      "The browser does not allow notifications from this page. You can allow them in its settings for this site.",
      true,
    );
  allowed = undefined;
  readers.forEach((reader) => reader());
}

/** Announces something in a hidden page: in its title, and as a notification if the person has switched them on. */
export function notifyHidden(text: string): void {
  if (!document.hidden) return;
  const notice = `${text} · `;
  document.title = notice + document.title;
  const restore = () => {
    if (document.title.startsWith(notice)) document.title = document.title.slice(notice.length);
  };
  document.addEventListener("visibilitychange", restore, { once: true });
  if (isOn()) new Notification(text).onclick = () => window.focus();
}
