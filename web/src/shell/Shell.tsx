import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";
import { useConnection } from "../api/events";
import { useSession } from "../api/session";
import { Brand } from "../ui/Brand";
import { useIdle } from "../ui/idle";
import { loadMenus, Menu, MenuItem } from "../ui/Menu";
import { useNarrow } from "../ui/narrow";
import { Toasts } from "../ui/Toast";
import { useWaiting } from "../approvals/waiting";
import { AccountMenu, WorkspaceMenu } from "./Account";
import { sections, type Section } from "./sections";
import css from "./shell.module.css";

function useSections(): Section[] {
  const session = useSession();
  return useMemo(() => sections.filter((s) => s.allowed?.(session) ?? true), [session]);
}

export function Shell() {
  const all = useSections();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const here = all.find((s) => path === s.to || path.startsWith(`${s.to}/`));
  const narrow = useNarrow();
  const main = useRef<HTMLElement>(null);
  const resolved = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const shown = useRef(resolved);
  useEffect(() => {
    // What led here may be gone, such as a dialog: the keyboard goes on with the new screen.
    if (shown.current && shown.current !== resolved && document.activeElement === document.body) main.current?.focus();
    shown.current = resolved;
  }, [resolved]);
  const idle = useIdle();
  useEffect(() => {
    if (idle) loadMenus().catch(() => undefined); // the menu that opens tries again
  }, [idle]);
  useEffect(() => {
    document.title = here ? `${here.name} · Ropewalk` : "Ropewalk";
  }, [here]);
  return (
    <div className={css.shell}>
      <a className={css.skip} href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to content</a>
      <Banner />
      {narrow ? <MobileTop /> : <Nav all={all} here={here} />}
      <main className={css.main} id="main" ref={main} tabIndex={-1}><Outlet /></main>
      {narrow && <TabBar all={all} here={here} />}
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

function Nav({ all, here }: { all: Section[]; here?: Section }) {
  const groups = ["Work", "Watch", "Manage"] as const;
  const waiting = useWaiting();
  return (
    <nav className={css.nav} aria-label="Main">
      <div className={css.brand}><Brand />Ropewalk</div>
      <WorkspaceMenu />
      {groups.map((group) => {
        const links = all.filter((s) => s.group === group);
        return links.length > 0 && (
          <div key={group} role="group" aria-labelledby={`nav-${group}`}>
            <div className={css.group} id={`nav-${group}`}>{group}</div>
            <div className={css.links}>
              {links.map((s) => (
                <Link key={s.to} to={s.to} className={css.link} aria-current={s === here ? "page" : undefined}>
                  <s.icon aria-hidden="true" />
                  {s.name}
                  {s.to === "/approvals" && waiting > 0 && <span className={css.linkCount}>{waiting}<span className="visually-hidden"> waiting</span></span>}
                </Link>
              ))}
            </div>
          </div>
        );
      })}
      <div className={css.foot}><AccountMenu /></div>
    </nav>
  );
}

const MobileTop = () => (
  <header className={css.mobileTop}>
    <Brand label="Ropewalk" />
    <WorkspaceMenu />
    <AccountMenu compact />
  </header>
);

function TabBar({ all, here }: { all: Section[]; here?: Section }) {
  const first = all.slice(0, all.length > 5 ? 4 : 5);
  const rest = all.slice(first.length);
  return (
    <nav className={css.tabbar} aria-label="Main, short">
      {first.map((s) => (
        <Link key={s.to} to={s.to} className={css.tab} aria-current={s === here ? "page" : undefined}>
          <s.icon aria-hidden="true" />
          {s.name}
        </Link>
      ))}
      {rest.length > 0 && (
        <Menu side="top" trigger={<button type="button" className={css.tab} aria-current={here && rest.includes(here) ? "page" : undefined}><Ellipsis aria-hidden="true" />More</button>}>
          {rest.map((s) => <RestItem key={s.to} section={s} />)}
        </Menu>
      )}
    </nav>
  );
}

function RestItem({ section }: { section: Section }) {
  const navigate = useNavigate();
  return <MenuItem icon={<section.icon aria-hidden="true" />} onSelect={() => void navigate({ to: section.to })}>{section.name}</MenuItem>;
}
