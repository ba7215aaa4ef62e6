/** A number that JavaScript would write differently, such as a 19-digit id or 1.0. It is shown and sent exactly as it
 * was received or typed. */
export class Digits {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
  toJSON(): string {
    return mark + this.text + mark;
  }
}

const mark = `#${crypto.getRandomValues(new Uint32Array(4)).join("-")}#`; // random, so that no received text contains it
const written = new RegExp(`"${mark}([^"]*?)${mark}"`, "g");
const suspicious = /\d{16}|\d\.\d{10,}|\d[eE][-+]?\d|\.\d*0\b/;
const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

/** Returns a number's significant digits and the position of its decimal point. The result is the same for every way of writing the number. */
function canonical(text: string): string {
  const [, sign = "", whole = "", part = "", exponent = "0"] =
    /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}

/** Parses a number. The result is a JavaScript number unless that would lose digits or trailing zeros. */
export function numberOf(text: string): number | Digits {
  const value = Number(text);
  const same = Number.isFinite(value) && canonical(String(value)) === canonical(text) && !/\.\d*0(?:$|[eE])/.test(text);
  return same ? value : new Digits(text);
}

/** Whether a number can be written to JSON unchanged. */
export const isWritable = (value: number | Digits) =>
  /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(String(value));

export const isNumber = (value: unknown): value is number | Digits =>
  typeof value === "number" || value instanceof Digits;

/** Like JSON.parse, but keeps all digits. */
export function parseJson(text: string): unknown {
  if (!suspicious.test(text)) return JSON.parse(text);
  const marked = text.replace(tokens, (token) =>
    token.startsWith('"') || !(numberOf(token) instanceof Digits) ? token : `"${mark}${token}"`,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? new Digits(value.slice(mark.length)) : value,
  );
}

/** Like JSON.stringify, but writes all digits. */
export const toJson = (value: unknown, indent?: number): string =>
  (JSON.stringify(value, null, indent) ?? "").replace(written, "$1");
