import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useConnection } from "../api/events";
import { useSession } from "../api/session";
import { untilLoaded } from "../ui/loading";
import { Toasts } from "../ui/Toast";
import { onShowShortcuts, shortcutOf } from "./shortcuts";
import { useSidebars } from "./sidebars";
import css from "./shell.module.css";

/** These are loaded when they are first used. */
const Palette = lazy(() => untilLoaded(async () => ({ default: (await import("./Palette")).Palette })));
const ShortcutList = lazy(() => untilLoaded(async () => ({ default: (await import("./ShortcutList")).ShortcutList })));

export function Shell() {
  const main = useRef<HTMLElement>(null);
  const sidebars = useSidebars();
  const resolved = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const shown = useRef(resolved);
  useEffect(() => {
    // If the element that led here has disappeared, for example with a dialog, the focus moves to the new screen.
    if (shown.current && shown.current !== resolved && document.activeElement === document.body) main.current?.focus();
    shown.current = resolved;
  }, [resolved]);
  const navigate = useNavigate();
  const [open, setOpen] = useState<"find" | "help" | null>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const shortcut = shortcutOf(event);
      if (!shortcut || (shortcut === "write" && event.defaultPrevented)) return;
      event.preventDefault();
      if (document.querySelector("dialog[open]")) return;
      if (shortcut === "find" || shortcut === "help") setOpen(shortcut);
      else if (shortcut === "new") void navigate({ to: "/chat" });
      else {
        const field = document.querySelector<HTMLElement>("[data-message]");
        if (field) field.focus();
        else void navigate({ to: "/chat" });
      }
    };
    document.addEventListener("keydown", press);
    const forget = onShowShortcuts(() => setOpen("help"));
    return () => {
      document.removeEventListener("keydown", press);
      forget();
    };
  }, [navigate]);
  const close = () => setOpen(null);
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
      <Suspense>
        {open === "find" && <Palette onClose={close} />}
        {open === "help" && <ShortcutList onClose={close} />}
      </Suspense>
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
        The connection to the server was lost. Reconnecting…
      </div>
    );
  if (!facts.dev) return null;
  return (
    <div className={css.banner} role="region" aria-label="Server mode">
      <span>
        <strong>Dev mode:</strong> no login is needed, and everyone on this machine acts as the owner.
      </span>
    </div>
  );
}
