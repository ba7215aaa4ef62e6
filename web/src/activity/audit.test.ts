import { expect, test, vi } from "vitest";

vi.mock("../api/client", () => ({}));
vi.mock("../api/session", () => ({}));
vi.mock("../people/data", () => ({}));
const { withoutBegun } = await import("./audit");

const record = (requestId: string, action: string, outcome: string, target = "") => ({
  time: "2026-11-27T12:00:00Z",
  actor: "usr_a",
  requestId,
  action,
  outcome,
  target,
});
const shown = (...records: ReturnType<typeof record>[]) => withoutBegun(records).map((r) => `${r.action} ${r.outcome}`);

test("a change is shown once, by its end", () => {
  expect(shown(record("1", "POST /v1/keys", "ok"), record("1", "POST /v1/keys", "begun"))).toEqual([
    "POST /v1/keys ok",
  ]);
});

test("a change without an end stays", () => {
  expect(shown(record("1", "POST /v1/keys", "begun"))).toEqual(["POST /v1/keys begun"]);
});

test("a call is shown once, by its end, and a refused one as it is", () => {
  expect(
    shown(
      record("2", "tools.call", "invalid_input", "a__b"),
      record("1", "tools.call.ended", "tool_error", "a__b"),
      record("1", "tools.call", "allowed", "a__b"),
    ),
  ).toEqual(["tools.call invalid_input", "tools.call.ended tool_error"]);
});

test("of two calls in one request, the one that is in progress stays", () => {
  expect(
    shown(
      record("1", "tools.call.ended", "ok", "a__b"),
      record("1", "tools.call", "allowed", "a__b"),
      record("1", "tools.call", "allowed", "a__b"),
    ),
  ).toEqual(["tools.call.ended ok", "tools.call allowed"]);
});

test("the records of a call that have its id belong together, in any order", () => {
  const call = (callId: string, action: string, outcome: string) => ({
    ...record("1", action, outcome, "a__b"),
    callId,
  });
  expect(
    shown(call("x", "tools.call.ended", "ok"), call("y", "tools.call", "allowed"), call("x", "tools.call", "allowed")),
  ).toEqual(["tools.call.ended ok", "tools.call allowed"]);
});
