import { useNavigate } from "@tanstack/react-router";
import { MessageSquare, SquarePen } from "lucide-react";
import { useDeferredValue, useState, type ComponentType } from "react";
import { useConversations } from "../api/conversations";
import { useSession } from "../api/session";
import { Dialog } from "../ui/Dialog";
import { Search } from "../ui/Field";
import { sections } from "./sections";
import css from "./shell.module.css";

interface Command {
  key: string;
  name: string;
  icon: ComponentType<{ "aria-hidden": "true" }>;
  run: () => void;
}

/** Every screen and conversation, found by a few letters. */
export function Palette({ onClose }: { onClose: () => void }) {
  const session = useSession();
  const navigate = useNavigate();
  const [query, setQuery] = useState("");
  const words = useDeferredValue(query.trim().toLowerCase());
  const conversations = useConversations(words);
  const commands: Command[] = [
    { key: "new", name: "New chat", icon: SquarePen, run: () => void navigate({ to: "/chat" }) },
    ...sections
      .filter((s) => s.allowed?.(session) ?? true)
      .map((s) => ({ key: s.to, name: `Go to ${s.name}`, icon: s.icon, run: () => void navigate({ to: s.to }) })),
  ].filter((c) => c.name.toLowerCase().includes(words));
  const found = (conversations.data?.pages[0]?.conversations ?? []).slice(0, 8).map((c): Command => ({
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
  return (
    <Dialog title="Go to" onClose={onClose} onSubmit={() => choose(all[0])}>
      <Search label="Screen or conversation" value={query} autoFocus onChange={(e) => setQuery(e.target.value)} />
      <ul
        className={css.commands}
        aria-label="Results"
        onKeyDown={(e) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
          const buttons = [...e.currentTarget.querySelectorAll("button")];
          if (!step) return;
          e.preventDefault();
          buttons[buttons.indexOf(document.activeElement as HTMLButtonElement) + step]?.focus();
        }}
      >
        {all.map((c) => (
          <li key={c.key}>
            <button type="button" className={css.link} onClick={() => choose(c)}>
              <c.icon aria-hidden="true" />
              {c.name}
            </button>
          </li>
        ))}
      </ul>
      <p className={css.keys}>
        <kbd>Ctrl K</kbd> opens this, <kbd>Enter</kbd> the first result, <kbd>Esc</kbd> stops an answer.
      </p>
    </Dialog>
  );
}
