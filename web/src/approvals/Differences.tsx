import type { Schemas } from "../api/client";
import css from "./approvals.module.css";

type Change = Schemas["PinChange"]["changes"][number];

/** Shows the old and new definition with the differences marked. */
export function Differences({ changes }: { changes: Change[] }) {
  return (
    <dl className={css.changes} aria-label="Difference">
      {changes.map((change) => {
        const [start, before, after, end] = apart(change.before, change.after);
        return (
          <div key={change.path}>
            <dt>
              <code>{change.path}</code>
            </dt>
            {change.before && (
              <dd className={css.before}>
                <span className="visually-hidden">Before: </span>
                {start}
                {before && <del>{before}</del>}
                {end}
              </dd>
            )}
            {change.after && (
              <dd className={css.after}>
                <span className="visually-hidden">Now: </span>
                {start}
                {after && <ins>{after}</ins>}
                {end}
              </dd>
            )}
            {!change.after && <dd className={css.after}>Removed</dd>}
          </div>
        );
      })}
    </dl>
  );
}

/** Splits two texts at spaces into their common start, the parts that differ, and their common end. */
function apart(before: string, after: string): [start: string, before: string, after: string, end: string] {
  const a = before.split(/(?<=\s)/);
  const b = after.split(/(?<=\s)/);
  const shortest = Math.min(a.length, b.length);
  let head = 0;
  while (head < shortest && a[head]!.trim() === b[head]!.trim()) head++;
  let tail = 0;
  while (tail < shortest - head && a.at(-1 - tail)!.trim() === b.at(-1 - tail)!.trim()) tail++;
  const join = (words: string[]) => words.join("");
  return [
    join(b.slice(0, head)),
    join(a.slice(head, a.length - tail)),
    join(b.slice(head, b.length - tail)),
    join(b.slice(b.length - tail)),
  ];
}
