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

let name = "Ropewalk"; // of the page
let notice = "";

const showTitle = () => {
  document.title = notice + name;
};

/** Returns the title of the page, without a notice. */
export const pageTitle = () => name;

/** Sets the title of the page. A notice stays before it until somebody sees it. */
export function setPageTitle(to: string): void {
  name = to;
  showTitle();
}

/** Announces something in a hidden page: in its title, and with a notification if the person asked for them. */
export function notifyHidden(text: string): void {
  if (!document.hidden) return;
  notice = `${text} · `;
  showTitle();
  const seen = () => {
    notice = "";
    showTitle();
  };
  document.addEventListener("visibilitychange", seen, { once: true });
  if (isOn()) new Notification(text).onclick = () => window.focus();
}
