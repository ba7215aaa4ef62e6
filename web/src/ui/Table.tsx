import type { ReactNode } from "react";
import css from "./surface.module.css";

interface Column<T> {
  title: string;
  number?: boolean;
  cell: (row: T) => ReactNode;
}

/** Shows a table. On a narrow screen, the table scrolls sideways instead of the page. */
export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
}) {
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={label}>
      <table className={css.table}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.title} scope="col" className={c.number ? css.num : undefined}>
                {c.title || <span className="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((c) => (
                <td key={c.title} className={c.number ? css.num : undefined}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
