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

test("only the end of a change is shown", () => {
  expect(shown(record("1", "POST /v1/keys", "ok"), record("1", "POST /v1/keys", "begun"))).toEqual([
    "POST /v1/keys ok",
  ]);
});

test("a change without an end is shown", () => {
  expect(shown(record("1", "POST /v1/keys", "begun"))).toEqual(["POST /v1/keys begun"]);
});

test("only the end of a call is shown, and a refused call is unchanged", () => {
  expect(
    shown(
      record("2", "tools.call", "invalid_input", "a__b"),
      record("1", "tools.call.ended", "tool_error", "a__b"),
      record("1", "tools.call", "allowed", "a__b"),
    ),
  ).toEqual(["tools.call invalid_input", "tools.call.ended tool_error"]);
});

test("if one of two calls in a request has ended, the other one is still shown", () => {
  expect(
    shown(
      record("1", "tools.call.ended", "ok", "a__b"),
      record("1", "tools.call", "allowed", "a__b"),
      record("1", "tools.call", "allowed", "a__b"),
    ),
  ).toEqual(["tools.call.ended ok", "tools.call allowed"]);
});

test("records with the same call id belong together, whatever their order", () => {
  const call = (callId: string, action: string, outcome: string) => ({
    ...record("1", action, outcome, "a__b"),
    callId,
  });
  expect(
    shown(call("x", "tools.call.ended", "ok"), call("y", "tools.call", "allowed"), call("x", "tools.call", "allowed")),
  ).toEqual(["tools.call.ended ok", "tools.call allowed"]);
});
