import { useLayoutEffect, useRef, useState } from "react";
import { count, short } from "../ui/format";
import css from "./usage.module.css";

export interface Bar {
  label: string;
  input: number;
  output: number;
}

const height = 220;
const foot = 24;
const left = 44;

/** Shows the tokens per day: tokens read at the bottom, tokens written on top. For screen readers, the table below has the same numbers. */
export function Chart({ bars }: { bars: Bar[] }) {
  const ref = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    const svg = ref.current;
    if (!svg) return;
    const observer = new ResizeObserver(() => setWidth(svg.clientWidth || 800));
    observer.observe(svg);
    return () => observer.disconnect();
  }, []);
  const top = nice(Math.max(1, ...bars.map((b) => b.input + b.output)));
  const y = (value: number) => (height - foot) * (1 - value / top) + 4;
  const step = (width - left) / Math.max(1, bars.length);
  const thick = Math.max(2, Math.min(34, step * 0.68));
  const every = Math.ceil(bars.length / Math.max(1, Math.floor((width - left) / 64)));
  return (
    <svg
      ref={ref}
      className={css.chart}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`Tokens over time: ${bars
        .map((b) => `${b.label} ${count(b.input + b.output)}`)
        .slice(-31)
        .join(", ")}`}
    >
      {[0, 0.5, 1].map((part) => (
        <g key={part}>
          <line className={css.grid} x1={left} x2={width} y1={y(top * part)} y2={y(top * part)} />
          <text x={left - 8} y={y(top * part) + 4} textAnchor="end">
            {short(top * part)}
          </text>
        </g>
      ))}
      <g className={css.bars}>
        {bars.map((bar, i) => {
          const x = left + i * step + (step - thick) / 2;
          const low = y(bar.input);
          const high = y(bar.input + bar.output);
          return (
            <g key={bar.label}>
              <title>{`${bar.label}: ${count(bar.input)} read, ${count(bar.output)} written`}</title>
              <rect x={left + i * step} y={0} width={step} height={height - foot} fill="transparent" />
              <rect
                className={css.in}
                x={x}
                y={low}
                width={thick}
                height={Math.max(0, y(0) - low)}
                rx={Math.min(3, thick / 3)}
              />
              <rect
                className={css.out}
                x={x}
                y={high}
                width={thick}
                height={Math.max(0, low - high - 1)}
                rx={Math.min(3, thick / 3)}
              />
              {i % every === 0 && (
                <text x={x + thick / 2} y={height - 4} textAnchor="middle">
                  {bar.label.slice(5)}
                </text>
              )}
            </g>
          );
        })}
      </g>
    </svg>
  );
}

/** Rounds up to a number that suits an axis. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].map((n) => n * power).find((n) => n >= value) ?? value;
}
