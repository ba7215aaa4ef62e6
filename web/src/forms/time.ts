/** Returns the name of the person's time zone. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

const two = (n: number) => String(n).padStart(2, "0");

/** Formats an instant for the browser's date field, in the person's time zone. Returns "" if the text is not an instant. */
export function localOf(text: string): string {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return "";
  const minute = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
  const part = at.getMilliseconds() === 0 ? "" : `.${String(at.getMilliseconds()).padStart(3, "0")}`;
  return at.getSeconds() === 0 && !part ? minute : `${minute}:${two(at.getSeconds())}${part}`;
}

/** Returns the instant at which the person's clock shows this time, with its offset from UTC. When clocks are set
 * back in autumn, an hour repeats. An edited value stays in the repetition that it was in. */
export function instantOf(local: string, before = ""): string {
  let at = new Date(local);
  if (!local || Number.isNaN(at.getTime())) return "";
  const again = new Date(at.getTime() + 3_600_000);
  const isShownTwice = localOf(again.toISOString()) === localOf(at.toISOString());
  if (isShownTwice && new Date(before).getTimezoneOffset() === again.getTimezoneOffset()) at = again;
  const ahead = -at.getTimezoneOffset();
  const offset =
    ahead === 0 ? "Z" : `${ahead < 0 ? "-" : "+"}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`;
  return `${local.length === 16 ? `${local}:00` : local}${offset}`;
}
