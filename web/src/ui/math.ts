/** The marks of code spans that replace formulas in the Markdown. No keyboard can type these characters. */
const marks = { inline: "\uE000", display: "\uE001" };

const pattern = new RegExp(
  [
    String.raw`(?<=^|\n)[ \t]*(?<fence>\x60{3,}|~{3,})[^\n]*(?:\n(?![ \t]*\k<fence>)[^\n]*)*(?:\n[ \t]*\k<fence>[^\n]*)?`,
    String.raw`(?<ticks>\x60+)(?!\x60)(?:(?!\n\n)[\s\S]){1,2000}?(?<!\x60)\k<ticks>(?!\x60)`,
    String.raw`\\\[(?<bracket>[\s\S]{1,4000}?)\\\]`,
    String.raw`\\\((?<paren>[^\n]{1,1000}?)\\\)`,
    String.raw`\$\$(?<display>[^$]{1,4000}?)\$\$`,
    String.raw`\\[\s\S]`,
    // The same rule as in Pandoc, so that prices remain text: no space just inside the dollar signs, and no digit after
    // them.
    String.raw`\$(?<inline>(?=\S)(?:\\.|[^$\\\n\x60]){1,1000}?(?<!\s))\$(?!\d)`,
  ].join("|"),
  "g",
);

/** Reports whether the text between escaped brackets is a formula, as opposed to brackets that Markdown should show. */
const isFormula = (text: string) => /[\\^_={}<>+*/]|^\s*[\p{L}\d]\s*$/u.test(text);

/** Returns a Markdown text with its formulas as marked code spans, so that Markdown does not change their content. */
export function withMath(text: string): string {
  if (!text.includes("$") && !text.includes("\\(") && !text.includes("\\[")) return text;
  return text.replace(pattern, (whole: string, ...rest: unknown[]) => {
    const { bracket, paren, display, inline } = rest.at(-1) as Record<string, string | undefined>;
    const escaped = bracket ?? paren;
    if (escaped !== undefined && !isFormula(escaped)) return whole;
    const formula = escaped ?? display ?? inline;
    if (formula === undefined || formula.trim() === "") return whole;
    return span(formula, inline === undefined && paren === undefined);
  });
}

function span(formula: string, display: boolean): string {
  const line = formula
    .replaceAll(/(?<!\\)%.*$/gm, "")
    .replaceAll(/\s*\n\s*/g, " ")
    .trim()
    .replaceAll("|", "\uE002"); // a pipe would end a table cell
  const ticks = "`".repeat(Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length)) + 1);
  return `${ticks}${display ? marks.display : marks.inline}${line}${ticks}`;
}

/** Returns the formula in a marked code span, or undefined for other code. */
export function formulaOf(code: string): { tex: string; display: boolean } | undefined {
  const display = code.startsWith(marks.display);
  if (!display && !code.startsWith(marks.inline)) return undefined;
  return { tex: code.slice(1).replaceAll("\uE002", "|"), display };
}
