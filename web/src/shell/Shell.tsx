import { Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useConnection } from "../api/events";
import { useSession } from "../api/session";
import { Toasts } from "../ui/Toast";
import { useSidebars } from "./sidebars";
import css from "./shell.module.css";

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
  return (
    <div className={css.shell}>
      <a className={css.skip} href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to content</a>
      <Banner />
      {sidebars ? <sidebars.Top /> : <nav className={css.nav} aria-label="Main" />}
      <main className={css.main} id="main" ref={main} tabIndex={-1}><Outlet /></main>
      {sidebars && <sidebars.Bottom />}
      <Toasts />
    </div>
  );
}

function Banner() {
  const { facts } = useSession();
  const connection = useConnection();
  if (connection === "lost") return <div className={`${css.banner} ${css.lost}`} role="status">The connection to the server is lost. Trying again…</div>;
  if (!facts.dev) return null;
  return (
    <div className={css.banner} role="region" aria-label="Mode of the server">
      <span><strong>Dev mode:</strong> nobody has to log in, and everybody on this machine is the owner.</span>
    </div>
  );
}
