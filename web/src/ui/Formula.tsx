import { useEffect, useRef, useState } from "react";
import css from "./markdown.module.css";

let renderer: typeof import("temml").default | undefined;

/** Shows a TeX formula, rendered as MathML. The renderer is loaded for the first formula. Until then, the TeX itself is shown. */
export function Formula({ tex, display }: { tex: string; display: boolean }) {
  const [ready, setReady] = useState(renderer !== undefined);
  const target = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (ready) return;
    let gone = false;
    void import("temml").then(({ default: loaded }) => {
      renderer = loaded;
      if (!gone) setReady(true);
    });
    return () => {
      gone = true;
    };
  }, [ready]);
  useEffect(() => {
    if (!ready || !target.current) return;
    renderer?.render(tex, target.current, { displayMode: display, throwOnError: false, maxExpand: 500 });
  }, [ready, tex, display]);
  if (!ready) return <code>{tex}</code>;
  return <span ref={target} className={display ? css.formula : undefined} />;
}
