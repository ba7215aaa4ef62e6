import { useRouter } from "@tanstack/react-router";
import { Bell, BellOff, Check, Keyboard, ChevronsUpDown, LogOut, Moon, ScrollText, Sun, SunMoon } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { createPortal } from "react-dom";
import { useSession } from "../api/session";
import { untilLoaded } from "../ui/loading";
import { Menu, MenuItem, MenuLabel, MenuLine } from "../ui/Menu";
import { switchNotifications, useNotifications } from "./notify";
import { showShortcuts } from "./shortcuts";
import { applyTheme, useTheme } from "./theme";
import css from "./shell.module.css";

const Instructions = lazy(() => untilLoaded(async () => ({ default: (await import("./Instructions")).Instructions })));

const initials = (name: string) =>
  name
    .split(/[\s@._-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => word[0]!.toUpperCase())
    .join("") || "?";

/** Shows the current workspace, with a menu to switch to another. */
export function WorkspaceMenu() {
  const { workspace, workspaces, instructions, isWorkspaceAdmin, switchTo } = useSession();
  const [instructing, setInstructing] = useState(false);
  const router = useRouter();
  // Stay in the same section, but leave the open item, which belongs to the old workspace.
  const open = async (id: string) => {
    const section = router.state.location.pathname.split("/")[1]!;
    await router.navigate({ to: `/${section}`, search: {} });
    router.history.push(`/w/${encodeURIComponent(id)}/${section}`); // so that Back returns to the previous workspace
    switchTo(id);
  };
  return (
    <>
      <Menu
        align="start"
        trigger={
          <button type="button" className={css.who}>
            <span className="visually-hidden">Workspace </span>
            <span className={`${css.avatar} ${css.square}`} aria-hidden="true">
              {initials(workspace.name)}
            </span>
            <span>
              <b>{workspace.name}</b>
              <small>{workspace.role}</small>
            </span>
            <ChevronsUpDown aria-hidden="true" />
          </button>
        }
      >
        <MenuLabel>Workspaces</MenuLabel>
        {workspaces.map((w) => (
          <MenuItem
            key={w.id}
            icon={w.id === workspace.id ? <Check aria-label="current" /> : <span style={{ width: 16 }} />}
            onSelect={() => {
              if (w.id !== workspace.id) void open(w.id);
            }}
          >
            {w.name}
          </MenuItem>
        ))}
        {(isWorkspaceAdmin || instructions !== "") && (
          <>
            <MenuLine />
            <MenuItem icon={<ScrollText aria-hidden="true" />} onSelect={() => setInstructing(true)}>
              Instructions for models…
            </MenuItem>
          </>
        )}
      </Menu>
      {instructing &&
        createPortal(
          <Suspense>
            <Instructions onClose={() => setInstructing(false)} />
          </Suspense>,
          document.body,
        )}
    </>
  );
}

/** Shows the account menu, with the theme, notifications and logging out. */
export function AccountMenu({ compact }: { compact?: boolean }) {
  const { user, facts, logout } = useSession();
  const theme = useTheme();
  const notifies = useNotifications();
  const name = user.displayName || user.email || user.id;
  return (
    <Menu
      side={compact ? "bottom" : "top"}
      align={compact ? "end" : "start"}
      trigger={
        <button type="button" className={css.who} style={compact ? { flex: "none" } : undefined}>
          <span className="visually-hidden">Account of {compact && name} </span>
          <span className={css.avatar} aria-hidden="true">
            {initials(name)}
          </span>
          {!compact && (
            <span>
              <b>{name}</b>
              <small>{user.email || user.orgRole}</small>
            </span>
          )}
          {!compact && <ChevronsUpDown aria-hidden="true" />}
        </button>
      }
    >
      <MenuLabel>
        {user.email || name} · {user.orgRole}
      </MenuLabel>
      <MenuLine />
      <MenuItem
        icon={theme === "system" ? <Check aria-label="chosen" /> : <SunMoon aria-hidden="true" />}
        onSelect={() => applyTheme("system")}
      >
        System theme
      </MenuItem>
      <MenuItem
        icon={theme === "light" ? <Check aria-label="chosen" /> : <Sun aria-hidden="true" />}
        onSelect={() => applyTheme("light")}
      >
        Light theme
      </MenuItem>
      <MenuItem
        icon={theme === "dark" ? <Check aria-label="chosen" /> : <Moon aria-hidden="true" />}
        onSelect={() => applyTheme("dark")}
      >
        Dark theme
      </MenuItem>
      <MenuLine />
      <MenuItem
        icon={notifies ? <BellOff aria-hidden="true" /> : <Bell aria-hidden="true" />}
        onSelect={() => void switchNotifications(!notifies)}
      >
        {notifies ? "Stop notifying me" : "Notify me of answers"}
      </MenuItem>
      <MenuItem icon={<Keyboard aria-hidden="true" />} onSelect={showShortcuts}>
        Keyboard shortcuts
      </MenuItem>
      {!facts.dev && (
        <>
          <MenuLine />
          <MenuItem icon={<LogOut aria-hidden="true" />} onSelect={() => void logout()}>
            Log out
          </MenuItem>
        </>
      )}
      <MenuLine />
      <MenuLabel>Ropewalk {facts.version}</MenuLabel>
    </Menu>
  );
}
