import { expect, test } from "vitest";
import { blocks, definitions, startOfEnd, withDefinitions } from "./blocks";

const kinds = (text: string) => blocks(text).map((block) => block.kind);
const joined = (text: string) => blocks(text).flatMap((block) => block.chunks);

test("a text is split between its blocks", () => {
  expect(kinds("# Title\n\nSome text.\n\n- one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```js\nx\n```\n")).toEqual([
    "text",
    "text",
    "list",
    "table",
    "code",
  ]);
});

test("the end of a text has the fewest blocks that reach the wanted size", () => {
  const all = blocks("one one\n\ntwo two\n\nthree");
  expect(startOfEnd(all, 3, 5)).toBe(2);
  expect(startOfEnd(all, 3, 6)).toBe(1);
  expect(startOfEnd(all, 1, 100)).toBe(0);
  expect(startOfEnd([], 0, 5)).toBe(0);
});

test("text inside a fence is not taken for other blocks", () => {
  expect(kinds("```\n- not a list\n\n| a | b |\n| - | - |\n```")).toEqual(["code"]);
});

test("code stays open until its fence is closed", () => {
  expect(blocks("```js\nconst a = 1;")[0]).toMatchObject({ kind: "code", open: true });
  expect(blocks("```js\nconst a = 1;\n```")[0]).toMatchObject({ kind: "code", open: false });
});

test("a numbered list keeps its first number", () => {
  expect(blocks("7. seven\n8. eight")[0]).toMatchObject({ kind: "list", start: 7 });
});

test("a long list is cut into chunks of items", () => {
  const items = Array.from({ length: 50 }, (_, i) => `- item ${i}`);
  const [list] = blocks(items.join("\n"));
  expect(list!.chunks.length).toBeGreaterThan(1);
  expect(list!.chunks.join("\n")).toBe(items.join("\n"));
});

test("each chunk of a table has the table's head", () => {
  const rows = Array.from({ length: 50 }, (_, i) => `| ${i} | x |`);
  const [table] = blocks(["| n | x |", "| - | - |", ...rows].join("\n"));
  expect(table!.chunks.length).toBeGreaterThan(1);
  for (const chunk of table!.chunks) expect(chunk.startsWith("| n | x |\n| - | - |\n")).toBe(true);
});

test("no line is lost, wherever the text ends", () => {
  const text = "Intro\nmore\n\n1. one\n   - inner\n2. two\n\n> quote\n\n~~~\ncode\n~~~\nlast";
  for (let end = 1; end <= text.length; end++) {
    const words = (of: string) => of.split(/\s+/).filter(Boolean);
    expect(joined(text.slice(0, end)).flatMap(words)).toEqual(words(text.slice(0, end)));
  }
});

test("a growing text is split in the same way as a new one", () => {
  const text =
    "Intro\nmore\n\n1. one\n\n2. two\n\n10 things\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n| not | one |\n| - | - x |\n\n" +
    "~~~\n# code\n\n- more\n~~~\n# Title\n- x\n\n  y\n\n[p]: https://example.com\n\n\n> quote\nlast";
  const ends = (step: number) => Array.from({ length: Math.ceil(text.length / step) }, (_, i) => (i + 1) * step);
  for (const step of [1, 2, 3, 7, 20]) {
    const grown = ends(step).map((end) => blocks(text.slice(0, end)));
    const fresh = ends(step).map((end) => {
      blocks("");
      return blocks(text.slice(0, end));
    });
    expect(grown).toEqual(fresh);
  }
});

test("a chunk gets the link definitions that it uses", () => {
  const parts = blocks("See [the page][p].\n\n[p]: https://example.com\n");
  const defined = definitions(parts);
  expect(withDefinitions(parts[0]!.chunks[0]!, defined)).toMatch(
    /^See \[the page\]\[p\]\.\n\n+\[p\]: https:\/\/example\.com$/,
  );
});
