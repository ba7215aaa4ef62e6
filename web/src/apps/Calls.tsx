import { Link } from "@tanstack/react-router";
import { count, millis, plural } from "../ui/format";
import { Card } from "../ui/Surface";
import { useCalls, type Hour } from "./hours";
import css from "./apps.module.css";

/** Shows admins an app's calls, errors and durations in the last 24 hours. Without an audit trail, it shows nothing. */
export function Calls({ app }: { app: string }) {
  const { data } = useCalls(app);
  if (!data) return null;
  const calls = data.reduce((sum, hour) => sum + hour.calls, 0);
  const errors = data.reduce((sum, hour) => sum + hour.errors, 0);
  const slowest = Math.max(0, ...data.map((hour) => hour.median ?? 0));
  return (
    <Card
      title="Last 24 hours"
      actions={
        <Link to="/activity" search={{ tab: "audit", action: "tools.call", tool: `${app}__` }}>
          Show the calls
        </Link>
      }
    >
      <div className={css.charts}>
        <Spark title={plural(calls, "call")} hours={data} value={(hour) => hour.calls} show={count} />
        <Spark title={plural(errors, "error")} hours={data} value={(hour) => hour.errors} show={count} bad />
        <Spark
          title={calls > 0 ? `Median time up to ${millis(slowest)}` : "No durations yet"}
          hours={data}
          value={(hour) => hour.median ?? 0}
          show={millis}
        />
      </div>
    </Card>
  );
}

interface SparkProps {
  title: string;
  hours: Hour[];
  value: (hour: Hour) => number;
  show: (value: number) => string;
  bad?: boolean;
}

const [width, height] = [240, 48];

/** Shows a small chart with one bar per hour. */
function Spark({ title, hours, value, show, bad }: SparkProps) {
  const top = Math.max(1, ...hours.map(value));
  const step = width / hours.length;
  const nameOf = ({ at }: Hour) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const busy = hours.filter((hour) => value(hour) > 0);
  const spoken = busy.map((hour) => `${nameOf(hour)} ${show(value(hour))}`).join(", ");
  return (
    <figure className={css.spark}>
      <figcaption>{title}</figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}, by hour: ${spoken || "none"}`}
      >
        {hours.map((hour, i) => {
          const tall = (value(hour) / top) * (height - 2);
          return (
            <g key={hour.at}>
              <title>{`${nameOf(hour)}: ${show(value(hour))}`}</title>
              <rect x={i * step} y={0} width={step} height={height} fill="transparent" />
              <rect
                className={bad ? css.sparkBad : css.sparkBar}
                x={i * step + 1}
                y={height - Math.max(tall, 1)}
                width={step - 2}
                height={Math.max(tall, 1)}
              />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
