import { expect, test, vi } from "vitest";

vi.mock("../api/client", () => ({}));
vi.mock("../api/session", () => ({}));
const { hoursOf } = await import("./hours");

const call = (time: string, outcome = "ok", durationMs = 10) => ({ time, outcome, durationMs, target: "a__b" });

test("calls are counted in the hour in which they ended", () => {
  const now = Date.parse("2026-11-27T12:30:00Z");
  const all = hoursOf(
    [
      call("2026-11-27T12:01:00Z", "ok", 30),
      call("2026-11-27T12:29:00Z", "tool_error", 10),
      call("2026-11-27T12:20:00Z", "input_required", 20),
      call("2026-11-27T11:59:59Z"),
      call("2026-11-26T12:59:59Z"), // too old
    ],
    now,
  );
  expect(all).toHaveLength(24);
  expect(all.at(-1)).toEqual({ at: Date.parse("2026-11-27T12:00:00Z"), calls: 3, errors: 1, median: 20 });
  expect(all.at(-2)).toMatchObject({ calls: 1, errors: 0 });
  expect(all.reduce((sum, { calls }) => sum + calls, 0)).toBe(4);
  expect(all[0]).toEqual({ at: Date.parse("2026-11-26T13:00:00Z"), calls: 0, errors: 0, median: null });
});
