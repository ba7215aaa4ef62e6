import { Outlet, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useConnection } from "../api/events";
import { useSession } from "../api/session";
import { untilLoaded } from "../ui/loading";
import { Toasts } from "../ui/Toast";
import { useSidebars } from "./sidebars";
import css from "./shell.module.css";

/** Loaded when it is asked for. */
const Palette = lazy(() => untilLoaded(async () => ({ default: (await import("./Palette")).Palette })));

export function Shell() {
  const main = useRef<HTMLElement>(null);
  const sidebars = useSidebars();
  const resolved = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const shown = useRef(resolved);
  useEffect(() => {
    // What led here may be gone, such as a dialog: the keyboard goes on with the new screen.
    if (shown.current && shown.current !== resolved && document.activeElement === document.body) main.current?.focus();
    shown.current = resolved;
  }, [resolved]);
  const [finding, setFinding] = useState(false);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k" || event.shiftKey || event.altKey)
        return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) setFinding(true);
    };
    document.addEventListener("keydown", open);
    return () => document.removeEventListener("keydown", open);
  }, []);
  return (
    <div className={css.shell}>
      <a
        className={css.skip}
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <Banner />
      {sidebars ? <sidebars.Top /> : <nav className={css.nav} aria-label="Main" />}
      <main className={css.main} id="main" ref={main} tabIndex={-1}>
        <Outlet />
      </main>
      {sidebars && <sidebars.Bottom />}
      {finding && (
        <Suspense>
          <Palette onClose={() => setFinding(false)} />
        </Suspense>
      )}
      <Toasts />
    </div>
  );
}

function Banner() {
  const { facts } = useSession();
  const connection = useConnection();
  if (connection === "lost")
    return (
      <div className={`${css.banner} ${css.lost}`} role="status">
        The connection to the server is lost. Trying again…
      </div>
    );
  if (!facts.dev) return null;
  return (
    <div className={css.banner} role="region" aria-label="Mode of the server">
      <span>
        <strong>Dev mode:</strong> nobody has to log in, and everybody on this machine is the owner.
      </span>
    </div>
  );
}
