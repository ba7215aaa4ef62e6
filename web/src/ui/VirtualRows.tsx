import { measureElement, useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type ReactNode } from "react";

interface Props<T> {
  label: string;
  items: T[];
  /** The estimated height of a row. */
  size: number;
  /** The height at which the list starts to scroll, or "fill" for the height of the parent. */
  max: number | "fill";
  keyOf: (item: T) => string | number;
  render: (item: T, index: number) => ReactNode;
  onEnd?: () => void;
  /** The index of a row to scroll to, or -1 for none. */
  shown?: number;
}

/** Shows a list of any length. Only the visible rows are part of the page. */
export function VirtualRows<T>({ label, items, size, max, keyOf, render, onEnd, shown = -1 }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => size,
    // A new row is measured by the observer, after the frame's layout. Measuring it any earlier would need a layout of
    // its own. Rows of a hidden list measure 0. If that were kept, the list would be empty when it is shown again.
    measureElement: (row, entry, list) =>
      (entry ? measureElement(row, entry, list) : list.itemSizeCache.get(keyOf(items[list.indexFromElement(row)]!))) ||
      size,
    getItemKey: (i) => keyOf(items[i]!),
    overscan: 8,
    onChange: (v) => {
      const last = v.getVirtualItems().at(-1);
      if (last && last.index >= items.length - 5) onEnd?.();
    },
  });
  useEffect(() => {
    if (shown >= 0) rows.scrollToIndex(shown, { align: "auto" });
  }, [rows, shown]);
  const style = max === "fill" ? { height: "100%" } : { maxHeight: max };
  return (
    <div
      ref={scroller}
      style={{ ...style, overflowY: "auto", contain: "content" }}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <ul style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map((row) => (
          <li
            key={row.key}
            ref={rows.measureElement}
            data-index={row.index}
            aria-setsize={items.length}
            aria-posinset={row.index + 1}
            style={{ position: "absolute", top: 0, left: 0, width: "100%", transform: `translateY(${row.start}px)` }}
          >
            {render(items[row.index]!, row.index)}
          </li>
        ))}
      </ul>
    </div>
  );
}
