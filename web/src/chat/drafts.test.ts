import { expect, test, vi } from "vitest";

vi.mock("../api/session", () => ({}));
vi.mock("../api/leave", () => ({}));
const { withWithdrawn } = await import("./drafts");

const file = { name: "a.txt", mimeType: "text/plain", data: "YQ==" };
const empty = { text: "", files: [], model: "", off: [] };

test("a withdrawn message returns to the draft with its files", () => {
  expect(withWithdrawn(empty, { content: "look", attachments: [file] })).toEqual({ text: "look", files: [file] });
});

test("text written since then comes after the withdrawn message", () => {
  const now = { ...empty, text: "and more", files: [{ ...file, name: "b.txt" }] };
  expect(withWithdrawn(now, { content: "look", attachments: [file] })).toEqual({
    text: "look\nand more",
    files: [file, { ...file, name: "b.txt" }],
  });
  expect(withWithdrawn(now, { content: "" }).text).toBe("and more");
});
