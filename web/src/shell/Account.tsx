import { useRouter } from "@tanstack/react-router";
import { Bell, Check, ChevronsUpDown, LogOut, Moon, Sun, SunMoon } from "lucide-react";
import { useSession } from "../api/session";
import { Menu, MenuItem, MenuLabel, MenuLine } from "../ui/Menu";
import { mayAskToNotify } from "./notify";
import { applyTheme, useTheme } from "./theme";
import css from "./shell.module.css";

const initials = (name: string) =>
  name
    .split(/[\s@._-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => word[0]!.toUpperCase())
    .join("") || "?";

/** Which workspace the person is in, and the others. */
export function WorkspaceMenu() {
  const { workspace, workspaces, switchTo } = useSession();
  const router = useRouter();
  // The section stays; what was open in it belongs to the other workspace.
  const open = async (id: string) => {
    const section = router.state.location.pathname.split("/")[1]!;
    await router.navigate({ to: `/${section}`, search: {} });
    router.history.push(`/w/${encodeURIComponent(id)}/${section}`); // so that Back leads to the workspace before
    switchTo(id);
  };
  return (
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
    </Menu>
  );
}

/** Who is logged in, the theme, and the way out. */
export function AccountMenu({ compact }: { compact?: boolean }) {
  const { user, facts, logout } = useSession();
  const theme = useTheme();
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
        Theme of the system
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
      {mayAskToNotify() && (
        <>
          <MenuLine />
          <MenuItem icon={<Bell aria-hidden="true" />} onSelect={() => void Notification.requestPermission()}>
            Notify me of answers
          </MenuItem>
        </>
      )}
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
