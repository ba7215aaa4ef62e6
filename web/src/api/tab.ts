import { draftPrefix } from "./leave";

const remembered = "ropewalk.tab";

let number = 1;

/** Returns what the key of this tab's draft of a new chat ends with, so that tabs do not overwrite each other's. */
export const newChat = () => (number === 1 ? "new" : `new ${number}`);

/**
 * Locks a number for this page until it is closed. Reports whether no other tab has it, which is assumed if the browser
 * refuses all locks.
 */
const lock = (to: number, options: LockOptions) =>
  new Promise<boolean>((resolve) => {
    navigator.locks
      .request(`${remembered} ${to}`, options, (held) => {
        resolve(held !== null);
        return held ? new Promise<void>(() => undefined) : undefined;
      })
      .catch(() => resolve(!options.signal?.aborted));
  });

/**
 * Claims a number for this tab: the one from before a reload, or else the first that no other tab has. Numbers with a stored
 * draft come first, so that a closed tab's draft is found again. Without locks, which only secure contexts have, all tabs have
 * the same number.
 */
export async function claimTab(): Promise<void> {
  if (!("locks" in navigator)) return;
  const before = Number(sessionStorage.getItem(remembered));
  number = before || 1;
  // The page before a reload may still hold its lock. A duplicated tab waits in vain.
  if (before > 0 && (await lock(before, { signal: AbortSignal.timeout(200) }))) return;
  const drafts = Object.keys(localStorage)
    .filter((key) => key.startsWith(draftPrefix))
    .map((key) => / new(?: (\d+))?$/.exec(key))
    .flatMap((found) => (found ? [Number(found[1] ?? 1)] : []))
    .sort((a, b) => a - b);
  let next = 1;
  do number = drafts.shift() ?? next++;
  while (!(await lock(number, { ifAvailable: true })));
  try {
    sessionStorage.setItem(remembered, String(number));
  } catch {
    // The storage is full. After a reload, the tab claims a number again.
  }
}
