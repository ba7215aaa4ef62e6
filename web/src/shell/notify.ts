/** Whether the browser can be asked to notify the person of answers. */
export const mayAskToNotify = () => "Notification" in window && Notification.permission === "default";

/** Says in a page that nobody looks at that something is ready: in its title, and with a notification where the person wants them. */
export function notifyHidden(text: string): void {
  if (!document.hidden) return;
  const { title } = document;
  document.title = `${text} · ${title}`;
  document.addEventListener(
    "visibilitychange",
    () => {
      document.title = title;
    },
    { once: true },
  );
  if ("Notification" in window && Notification.permission === "granted")
    new Notification(text).onclick = () => window.focus();
}
