import { expect, test, vi } from "vitest";

vi.mock("../ui/Toast", () => ({ toast: () => undefined }));

test("notifications can also be switched off in another tab or by the browser", async () => {
  const stored = new Map<string, string>();
  const shown: string[] = [];
  const status = new EventTarget();
  class Notification {
    static permission = "granted";
    constructor(text: string) {
      shown.push(text);
    }
  }
  vi.stubGlobal("Notification", Notification);
  vi.stubGlobal("window", { Notification });
  vi.stubGlobal("document", { hidden: true, title: "", addEventListener: () => undefined });
  vi.stubGlobal("localStorage", { getItem: (key: string) => stored.get(key) ?? null });
  vi.stubGlobal("navigator", { permissions: { query: () => Promise.resolve(status) } });
  const { notifyHidden } = await import("./notify");
  notifyHidden("off");
  stored.set("ropewalk.notify", "on");
  notifyHidden("on");
  await Promise.resolve();
  stored.clear();
  notifyHidden("off again");
  stored.set("ropewalk.notify", "on");
  Notification.permission = "denied";
  status.dispatchEvent(new Event("change"));
  notifyHidden("denied");
  expect(shown).toEqual(["on"]);
});

test("a notice stays before the title until the page is seen, even if the title changes meanwhile", async () => {
  const page = Object.assign(new EventTarget(), { hidden: true, title: "" });
  vi.stubGlobal("document", page);
  vi.stubGlobal("localStorage", { getItem: () => null });
  const { notifyHidden, setPageTitle } = await import("./notify");
  setPageTitle("Chat");
  notifyHidden("Answer ready");
  expect(page.title).toBe("Answer ready · Chat");
  setPageTitle("A title");
  expect(page.title).toBe("Answer ready · A title");
  notifyHidden("Answer ready");
  expect(page.title).toBe("Answer ready · A title");
  page.hidden = false;
  page.dispatchEvent(new Event("visibilitychange"));
  expect(page.title).toBe("A title");
});
