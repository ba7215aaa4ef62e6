import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { api, eventStream } from "../api/client";
import { readEvents } from "../api/sse";
import { Field, Search } from "../ui/Field";
import { Switch } from "../ui/Switch";
import { Card, Failure } from "../ui/Surface";
import css from "./apps.module.css";

interface Line {
  n: number;
  text: string;
}

const keep = 20_000;

/** Shows the live log of an app. */
export function Logs({ app }: { app: string }) {
  const { lines, error } = useLogs(app);
  const [query, setQuery] = useState("");
  const [follow, setFollow] = useState(true);
  const scroller = useRef<HTMLDivElement>(null);
  const shown = query ? lines.filter((l) => l.text.toLowerCase().includes(query.toLowerCase())) : lines;
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 20,
    overscan: 20,
  });
  useEffect(() => {
    if (follow && shown.length > 0) rows.scrollToIndex(shown.length - 1, { align: "end" });
  }, [follow, shown.length, rows]);
  return (
    <Card
      flush
      title="Log"
      actions={
        <>
          <Search label="Search the log" value={query} onChange={(e) => setQuery(e.target.value)} />
          <Field label={<span className="visually-hidden">Follow</span>}>
            {(props) => <Switch {...props} label="Follow" checked={follow} onChange={setFollow} />}
          </Field>
          <span className={css.cell}>Follow</span>
        </>
      }
    >
      {error && <Failure error={error} />}
      <div
        ref={scroller}
        className={css.logs}
        style={{ overflowY: "auto", padding: "8px 0" }}
        tabIndex={0}
        role="log"
        aria-label={`Log for ${app}`}
      >
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((row) => {
            const line = shown[row.index]!;
            return (
              <div
                key={line.n}
                ref={rows.measureElement}
                data-index={row.index}
                className={css.line}
                style={{
                  position: "absolute",
                  top: 0,
                  left: 0,
                  width: "100%",
                  transform: `translateY(${row.start}px)`,
                }}
              >
                <span>{line.text}</span>
              </div>
            );
          })}
        </div>
        {lines.length === 0 && (
          <div className={css.line}>
            <span>The app has not written anything yet.</span>
          </div>
        )}
      </div>
    </Card>
  );
}

function useLogs(app: string) {
  const [lines, setLines] = useState<Line[]>([]);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    let waiting: Line[] = [];
    let n = 0;
    let frame = 0;
    const flush = () => {
      frame = 0;
      const fresh = waiting;
      waiting = [];
      setLines((all) => [...all, ...fresh].slice(-keep));
    };
    const params = { path: { name: app }, query: { follow: true, tail: 500 } };
    readEvents(api.GET("/v1/apps/{name}/logs", { ...eventStream, params, signal: abort.signal }), (event) => {
      if (event.name !== "log") return;
      waiting.push({ n: n++, text: (event.data as { text: string }).text });
      frame ||= requestAnimationFrame(flush);
    }).catch((problem: Error) => {
      if (!abort.signal.aborted) setError(problem);
    });
    return () => {
      abort.abort();
      cancelAnimationFrame(frame);
    };
  }, [app]);
  return { lines, error };
}
