/**
 * A number that JavaScript cannot hold, such as an id of 19 digits: what is shown and sent has the digits that were received
 * or typed.
 */
export class Digits {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
  toJSON(): string {
    return mark + this.text + mark;
  }
}

const mark = `#${crypto.getRandomValues(new Uint32Array(4)).join("-")}#`; // no text of others contains it
const written = new RegExp(`"${mark}([^"]*?)${mark}"`, "g");
const suspicious = /\d{16}|\d\.\d{10,}|\d[eE][-+]?\d/;
const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

/** The digits that count and the place of the point: equal for two ways of writing one number. */
function canonical(text: string): string {
  const [, sign = "", whole = "", part = "", exponent = "0"] = /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}

/** The number that a text writes, as a number where that loses nothing. */
export function numberOf(text: string): number | Digits {
  const value = Number(text);
  return Number.isFinite(value) && canonical(String(value)) === canonical(text.replace(/^\+/, "")) ? value : new Digits(text);
}

export const isNumber = (value: unknown): value is number | Digits => typeof value === "number" || value instanceof Digits;

/** JSON.parse that keeps all digits. */
export function parseJson(text: string): unknown {
  if (!suspicious.test(text)) return JSON.parse(text);
  const marked = text.replace(tokens, (token) => (token.startsWith('"') || !(numberOf(token) instanceof Digits) ? token : `"${mark}${token}"`));
  return JSON.parse(marked, (_, value: unknown) => (typeof value === "string" && value.startsWith(mark) ? new Digits(value.slice(mark.length)) : value));
}

/** JSON.stringify that writes all digits. */
export const toJson = (value: unknown, indent?: number): string => (JSON.stringify(value, null, indent) ?? "").replace(written, "$1");
