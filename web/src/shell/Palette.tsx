import { useNavigate } from "@tanstack/react-router";
import { Bell, Building2, Keyboard, LogOut, MessageSquare, Moon, SquarePen, Sun, SunMoon } from "lucide-react";
import { useDeferredValue, useRef, useState, type ComponentType, type KeyboardEvent } from "react";
import { useConversations } from "../api/conversations";
import { useSession } from "../api/session";
import { Dialog } from "../ui/Dialog";
import { Search } from "../ui/Field";
import { switchNotifications, useNotifications } from "./notify";
import { sections } from "./sections";
import { keysHere, showShortcuts } from "./shortcuts";
import { applyTheme } from "./theme";
import css from "./shell.module.css";

interface Command {
  key: string;
  name: string;
  icon: ComponentType<{ "aria-hidden": "true" }>;
  run: () => void;
}

/** Finds every screen, conversation and command by a few letters. */
export function Palette({ onClose }: { onClose: () => void }) {
  const session = useSession();
  const navigate = useNavigate();
  const [query, setQuery] = useState("");
  const typed = query.trim().toLowerCase();
  const words = useDeferredValue(typed);
  const conversations = useConversations(words);
  const { workspace, workspaces, facts, switchTo, logout } = session;
  const notifies = useNotifications();
  const commands: Command[] = [
    { key: "new", name: "New chat", icon: SquarePen, run: () => void navigate({ to: "/chat" }) },
    ...sections
      .filter((s) => s.allowed?.(session) ?? true)
      .map((s) => ({ key: s.to, name: `Go to ${s.name}`, icon: s.icon, run: () => void navigate({ to: s.to }) })),
    ...workspaces
      .filter((w) => w.id !== workspace.id)
      .map((w) => ({
        key: w.id,
        name: `Switch to the workspace ${w.name}`,
        icon: Building2,
        run: () => switchTo(w.id),
      })),
    { key: "system", name: "Use the system theme", icon: SunMoon, run: () => applyTheme("system") },
    { key: "light", name: "Use the light theme", icon: Sun, run: () => applyTheme("light") },
    { key: "dark", name: "Use the dark theme", icon: Moon, run: () => applyTheme("dark") },
    {
      key: "notify",
      name: notifies ? "Stop notifying me" : "Notify me of answers",
      icon: Bell,
      run: () => void switchNotifications(!notifies),
    },
    { key: "help", name: "Show keyboard shortcuts", icon: Keyboard, run: showShortcuts },
    ...(facts.dev ? [] : [{ key: "logout", name: "Log out", icon: LogOut, run: () => void logout() }]),
  ].filter((c) => typed.split(/\s+/).every((word) => c.name.toLowerCase().includes(word)));
  // Enter must not open a result for an earlier query.
  const current = words === typed && !conversations.isPlaceholderData;
  const found = ((current && conversations.data?.pages[0]?.conversations) || []).slice(0, 8).map((c): Command => ({
    key: c.id,
    name: c.title || c.preview || "Conversation",
    icon: MessageSquare,
    run: () => void navigate({ to: "/chat/$id", params: { id: c.id } }),
  }));
  const all = [...commands, ...found];
  const choose = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  const list = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [field.current, ...(list.current?.querySelectorAll("button") ?? [])];
    stops[stops.indexOf(document.activeElement as HTMLButtonElement) + step]?.focus();
  };
  return (
    <Dialog title="Go to" onClose={onClose} onSubmit={() => choose(all[0])}>
      <div className={css.palette} onKeyDown={move}>
        <Search
          ref={field}
          label="Screen, conversation or command"
          value={query}
          onChange={(e) => setQuery(e.target.value)}
        />
        <ul ref={list} className={css.commands} aria-label="Results">
          {all.map((c) => (
            <li key={c.key}>
              <button type="button" className={css.link} onClick={() => choose(c)}>
                <c.icon aria-hidden="true" />
                {c.name}
              </button>
            </li>
          ))}
        </ul>
        {all.length === 0 && current && !conversations.isPending && <p role="status">No matches</p>}
      </div>
      <p className={css.keys}>
        <kbd>Enter</kbd> opens the first result. <kbd>{keysHere("Ctrl /")}</kbd> lists all shortcuts.
      </p>
    </Dialog>
  );
}
