import { beforeEach, expect, test, vi } from "vitest";

vi.mock("./leave", () => ({ draftPrefix: "ropewalk.draft " }));

type Held = (lock: object | null) => unknown;

let stored: Record<string, string>;

beforeEach(() => {
  vi.resetModules();
  stored = {};
  vi.stubGlobal("localStorage", {});
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => stored[key] ?? null,
    setItem: (key: string, value: string) => void (stored[key] = value),
  });
});

const withLocks = (request: (name: string, options: LockOptions, held: Held) => Promise<unknown>) =>
  vi.stubGlobal("navigator", { locks: { request: vi.fn(request) } });

test("a tab claims the first number that no other tab has", async () => {
  withLocks((name, _, held) => Promise.resolve(void held(name.endsWith(" 1") ? null : {})));
  const { claimTab, newChat } = await import("./tab");
  await claimTab();
  expect(newChat()).toBe("new 2");
  expect(stored).toEqual({ "ropewalk.tab": "2" });
});

test("a tab claims another number if its own stays locked", async () => {
  stored["ropewalk.tab"] = "1";
  withLocks((name, { signal }, held) =>
    signal && name.endsWith(" 1")
      ? new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)))
      : Promise.resolve(void held(name.endsWith(" 1") ? null : {})),
  );
  const { claimTab, newChat } = await import("./tab");
  await claimTab();
  expect(newChat()).toBe("new 2");
});

test("a tab has the first number if the browser refuses locks and storage", async () => {
  let count = 0;
  withLocks(() => (++count > 3 ? new Promise(() => undefined) : Promise.reject(new Error("refused"))));
  vi.stubGlobal("sessionStorage", {
    getItem: () => null,
    setItem: () => {
      throw new Error("full");
    },
  });
  const { claimTab, newChat } = await import("./tab");
  await claimTab();
  expect(count).toBe(1);
  expect(newChat()).toBe("new");
});
