/** Creating a format is slow in browsers, so each format is created when it is first needed. */
const once = <T>(make: () => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};
const number = once(() => new Intl.NumberFormat("en"));
const compact = once(() => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }));
const relative = once(() => new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" }));
const dateAndTime = once(() => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }));

export const count = (n: number) => number().format(n);
export const short = (n: number) => compact().format(n);
export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export const cost = (usd: number | null | undefined) =>
  usd === null || usd === undefined ? "–" : usd !== 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return plural(Math.floor(seconds / 86_400), "day");
}

export const millis = (ms: number) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export function bytes(n: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${n >= 10 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

export function ago(time: string): string {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [
    [60, "second"],
    [3600, "minute"],
    [86_400, "hour"],
    [604_800, "day"],
    [2_629_800, "week"],
    [31_557_600, "month"],
  ];
  let per = 1;
  for (const [limit, unit] of steps) {
    if (Math.abs(seconds) < limit)
      return unit === "second" && Math.abs(seconds) < 10 ? "now" : relative().format(Math.round(seconds / per), unit);
    per = limit;
  }
  return relative().format(Math.round(seconds / 31_557_600), "year");
}

/** Returns the message of an error as a sentence. A message that starts with the name of a setting or field keeps its case. */
export const sentence = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).replace(
    /^[a-z]+(?=[ ,])/,
    (word) => word.charAt(0).toUpperCase() + word.slice(1),
  );

export const clock = (time: string) => new Date(time).toLocaleTimeString("en-GB");
export const moment = (time: string) => dateAndTime().format(new Date(time));

/** Estimates the number of tokens in a text, at four characters per token. */
export const tokens = (text: string) => Math.max(1, Math.round(text.length / 4));
