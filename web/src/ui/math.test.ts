import { describe, expect, test } from "vitest";
import { formulaOf, withMath } from "./math";

/** Returns the formulas in a text. Formulas on lines of their own are in brackets. */
const formulas = (text: string) =>
  [...withMath(text).matchAll(/`([\uE000\uE001][^`]*)`/g)].map(([, code]) => {
    const { tex, display } = formulaOf(code!)!;
    return display ? `[${tex}]` : tex;
  });

describe("formulas", () => {
  test.each<[string, string[]]>([
    ["Euler: $e^{i\\pi} = -1$.", ["e^{i\\pi} = -1"]],
    ["$$\\int_0^1 x\\,dx$$", ["[\\int_0^1 x\\,dx]"]],
    ["\\[\n a^2 % the square\n + b^2\n\\]", ["[a^2 + b^2]"]],
    ["with \\(x_1\\) and \\(n\\)", ["x_1", "n"]],
    ["| $|x|$ | y |", ["|x|"]],
    ["$a_1$ and $b$", ["a_1", "b"]],
    ["$$\na\n\n+ b\n$$", ["[a + b]"]],
  ])("in %j", (text, found) => expect(formulas(text)).toEqual(found));
});

describe("no formulas", () => {
  test.each([
    "It costs $5 to $10, or $1,000 a year.",
    "`$HOME` and `$PATH`",
    "```sh\necho $A $B\n```",
    "```\nopen $a$ code",
    "A price of \\$5\\$.",
    "a \\[not a link\\] and \\(an aside\\)",
    "half a formula: $$x + ",
  ])("in %j", (text) => expect(withMath(text)).toBe(text));
});

test("a formula may contain backticks", () => {
  expect(withMath("$$a ` b$$")).toBe("``\uE001a ` b``");
});
