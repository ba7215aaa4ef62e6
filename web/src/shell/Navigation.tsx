import { Link, useNavigate, useRouterState } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { memo, useEffect, useMemo } from "react";
import { useSession } from "../api/session";
import { useWaiting } from "../approvals/waiting";
import { Brand } from "../ui/Brand";
import { useIdle } from "../ui/idle";
import { loadMenus, Menu, MenuItem } from "../ui/Menu";
import { useNarrow } from "../ui/narrow";
import { AccountMenu, WorkspaceMenu } from "./Account";
import { setPageTitle } from "./notify";
import { sections, type Section } from "./sections";
import css from "./shell.module.css";

function useSections(): { all: Section[]; here?: Section } {
  const session = useSession();
  const all = useMemo(() => sections.filter((s) => s.allowed?.(session) ?? true), [session]);
  const here = useRouterState({
    select: ({ location: { pathname } }) => all.find((s) => pathname === s.to || pathname.startsWith(`${s.to}/`)),
  });
  return { all, here };
}

/** Shows the navigation above or next to the screen. */
export const Top = memo(function Top() {
  const { all, here } = useSections();
  const narrow = useNarrow();
  const idle = useIdle();
  useEffect(() => {
    if (idle) loadMenus().catch(() => undefined); // opening a menu tries again
  }, [idle]);
  useEffect(() => {
    setPageTitle(here ? `${here.name} · Ropewalk` : "Ropewalk");
  }, [here]);
  return narrow ? <MobileTop /> : <Nav all={all} here={here} />;
});

/** Shows the navigation below the screen, on phones. */
export const Bottom = memo(function Bottom() {
  const { all, here } = useSections();
  return useNarrow() && <TabBar all={all} here={here} />;
});

function Nav({ all, here }: { all: Section[]; here?: Section }) {
  const groups = ["Work", "Watch", "Manage"] as const;
  const waiting = useWaiting();
  return (
    <nav className={css.nav} aria-label="Main">
      <div className={css.brand}>
        <Brand />
        Ropewalk
      </div>
      <WorkspaceMenu />
      {groups.map((group) => {
        const links = all.filter((s) => s.group === group);
        return (
          links.length > 0 && (
            <div key={group} role="group" aria-labelledby={`nav-${group}`}>
              <div className={css.group} id={`nav-${group}`}>
                {group}
              </div>
              <div className={css.links}>
                {links.map((s) => (
                  <Link key={s.to} to={s.to} className={css.link} aria-current={s === here ? "page" : undefined}>
                    <s.icon aria-hidden="true" />
                    {s.name}
                    {s.to === "/approvals" && waiting > 0 && (
                      <span className={css.linkCount}>
                        {waiting}
                        <span className="visually-hidden"> waiting</span>
                      </span>
                    )}
                  </Link>
                ))}
              </div>
            </div>
          )
        );
      })}
      <div className={css.foot}>
        <AccountMenu />
      </div>
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
        <Menu
          side="top"
          trigger={
            <button type="button" className={css.tab} aria-current={here && rest.includes(here) ? "page" : undefined}>
              <Ellipsis aria-hidden="true" />
              More
            </button>
          }
        >
          {rest.map((s) => (
            <RestItem key={s.to} section={s} />
          ))}
        </Menu>
      )}
    </nav>
  );
}

function RestItem({ section }: { section: Section }) {
  const navigate = useNavigate();
  return (
    <MenuItem icon={<section.icon aria-hidden="true" />} onSelect={() => void navigate({ to: section.to })}>
      {section.name}
    </MenuItem>
  );
}
