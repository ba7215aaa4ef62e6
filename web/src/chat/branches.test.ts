import { expect, test, vi } from "vitest";

vi.mock("../api/client", () => ({}));
vi.mock("../api/session", () => ({}));
vi.mock("../api/conversations", () => ({}));
const { branch, branchingsOf } = await import("./branches");

test("a second version of a message lists both conversations in order", () => {
  expect(branch("a", [], 2, "b")).toEqual({ old: [{ at: 2, ids: ["a", "b"] }], fresh: [{ at: 2, ids: ["a", "b"] }] });
});

test("a third version joins the others, whichever version it was made from", () => {
  expect(branch("a", [{ at: 2, ids: ["a", "b"] }], 2, "c").fresh).toEqual([{ at: 2, ids: ["a", "b", "c"] }]);
});

test("a conversation forked at a later message keeps the earlier versions and its origin", () => {
  const { fresh } = branch(
    "b",
    [
      { at: 0, ids: ["a", "b"] },
      { at: 6, ids: ["b", "x"] },
    ],
    4,
    "c",
  );
  expect(fresh).toEqual([
    { at: 0, ids: ["a", "b"], self: "b" },
    { at: 4, ids: ["b", "c"] },
  ]);
});

test("metadata written by other programs is not trusted", () => {
  expect(branchingsOf({ branches: [{ at: "2", ids: [] }, { at: 1, ids: ["a", "b"] }, {}] })).toEqual([
    { at: 1, ids: ["a", "b"] },
  ]);
  expect(branchingsOf({ branches: "no" })).toEqual([]);
});
