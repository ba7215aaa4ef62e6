import { expect, test, vi } from "vitest";

vi.stubEnv("TZ", "Europe/Berlin");
const { instantOf, localOf } = await import("./time");

test.each(["2026-01-15T09:30:00+01:00", "2026-07-15T09:30:00+02:00", "2026-07-15T09:30:15.250+02:00"])(
  "%s keeps its instant",
  (instant) => {
    expect(instantOf(localOf(instant))).toBe(instant);
  },
);

test("an instant in another time zone is shown in the person's own time zone", () => {
  expect(localOf("2026-07-15T07:30:00Z")).toBe("2026-07-15T09:30");
});

test("an edited time stays in the same one of two repeated hours", () => {
  expect(instantOf("2026-10-25T02:31", "2026-10-25T02:30:00+02:00")).toBe("2026-10-25T02:31:00+02:00");
  expect(instantOf("2026-10-25T02:31", "2026-10-25T02:30:00+01:00")).toBe("2026-10-25T02:31:00+01:00");
});

test("a text that is not a time gives an empty field", () => {
  expect(localOf("tomorrow")).toBe("");
  expect(instantOf("")).toBe("");
});
