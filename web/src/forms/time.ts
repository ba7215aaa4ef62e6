/** The person's time zone, by its name. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

const two = (n: number) => String(n).padStart(2, "0");

/** An instant as the control of a browser has it: by the clock of the person. "" when the text is none. */
export function localOf(text: string): string {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return "";
  const minute = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
  return at.getSeconds() === 0 ? minute : `${minute}:${two(at.getSeconds())}`;
}

/** The instant that the person's clock shows, with its offset from UTC then, which summer time changes. */
export function instantOf(local: string): string {
  const at = new Date(local);
  if (!local || Number.isNaN(at.getTime())) return "";
  const ahead = -at.getTimezoneOffset();
  const offset = ahead === 0 ? "Z" : `${ahead < 0 ? "-" : "+"}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`;
  return `${local.length === 16 ? `${local}:00` : local}${offset}`;
}
