import { Link, useNavigate } from "@tanstack/react-router";
import { Download, Ellipsis, GitFork, ListChecks, Pencil, SquarePen, Trash2, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, take, type ConversationSummary } from "../api/client";
import { useConversationActions, useConversations } from "../api/conversations";
import { Button } from "../ui/Button";
import { Confirm, Dialog } from "../ui/Dialog";
import { Field, Input, Search } from "../ui/Field";
import { ago, plural } from "../ui/format";
import { Menu, MenuItem, MenuLine } from "../ui/Menu";
import { saveFile } from "../ui/save";
import { Empty, Failure, Skeleton } from "../ui/Surface";
import { toastError } from "../ui/Toast";
import { VirtualRows } from "../ui/VirtualRows";
import { useRunning } from "./runs";
import css from "./chat.module.css";

/** Shows the list of the person's conversations. */
export function Conversations({ here, open, onClose }: { here?: string; open: boolean; onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [words, setWords] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWords(query.trim()), 200);
    return () => clearTimeout(timer);
  }, [query]);
  const pages = useConversations(words);
  const navigate = useNavigate();
  const all = pages.data?.pages.flatMap((p) => p.conversations) ?? [];
  const [selected, setSelected] = useState<ReadonlySet<string> | null>(null); // null when no selection is in progress
  const toggle = (id: string) =>
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    const aside = list.current;
    if (!open || !aside) return;
    const before = document.activeElement;
    aside.querySelector<HTMLElement>("[data-close]")?.focus();
    return () => {
      const at = document.activeElement;
      if (before instanceof HTMLElement && (at === document.body || aside.contains(at))) before.focus();
    };
  }, [open]);
  return (
    <aside
      ref={list}
      className={css.side}
      data-open={open}
      aria-label="Conversations"
      onKeyDown={(e) => {
        if (!open || e.key !== "Escape" || e.shiftKey || document.querySelector("dialog[open], [role=menu]")) return;
        e.preventDefault(); // otherwise, Escape would also stop the answer
        onClose();
      }}
    >
      <div className={css.sideHead}>
        <Search
          label="Search conversations"
          placeholder="Search"
          value={query}
          onChange={(e) => setQuery(e.target.value)}
        />
        <Button
          look="quiet"
          label="New chat"
          onClick={() => {
            onClose();
            void navigate({ to: "/chat" });
          }}
        >
          <SquarePen aria-hidden="true" />
        </Button>
        <Button
          look="quiet"
          label="Select conversations"
          aria-pressed={selected !== null}
          disabled={all.length === 0 && selected === null}
          onClick={() => setSelected(selected ? null : new Set())}
        >
          <ListChecks aria-hidden="true" />
        </Button>
        <Button look="quiet" className={css.close} label="Close the list" data-close onClick={onClose}>
          <X aria-hidden="true" />
        </Button>
      </div>
      {selected && (
        <Selection
          selected={selected}
          shown={all.map((c) => c.id)}
          onSelect={setSelected}
          onDeleted={(ids) => {
            setSelected(null);
            if (here && ids.includes(here)) void navigate({ to: "/chat" });
          }}
        />
      )}
      <div className={css.sideList}>
        {pages.isLoadingError ? (
          <Failure error={pages.error} />
        ) : pages.isPending ? (
          <div style={{ padding: 16 }}>
            <Skeleton lines={5} />
          </div>
        ) : all.length === 0 ? (
          <Empty title={words ? "No matches" : "No conversations yet"} />
        ) : (
          <VirtualRows
            label="Conversations"
            items={all}
            size={52}
            max="fill"
            keyOf={(c) => c.id}
            onEnd={() => {
              if (pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage({ cancelRefetch: false });
            }}
            render={(c) =>
              selected ? (
                <div className={css.item} data-here={c.id === here}>
                  <label>
                    <input type="checkbox" checked={selected.has(c.id)} onChange={() => toggle(c.id)} />
                    <span>{titleOf(c)}</span>
                  </label>
                </div>
              ) : (
                <Row conversation={c} words={words} here={c.id === here} onOpen={onClose} />
              )
            }
          />
        )}
      </div>
    </aside>
  );
}

const titleOf = (c: ConversationSummary) => c.title || c.preview || "New conversation";

interface SelectionProps {
  selected: ReadonlySet<string>;
  shown: string[];
  onSelect: (ids: ReadonlySet<string>) => void;
  onDeleted: (ids: string[]) => void;
}

/** Shows the actions for selected conversations. */
function Selection({ selected, shown, onSelect, onDeleted }: SelectionProps) {
  const { removeAll } = useConversationActions();
  const [asking, setAsking] = useState(false);
  const all = shown.length > 0 && shown.every((id) => selected.has(id));
  const remove = () => {
    setAsking(false);
    removeAll.mutate([...selected], { onSuccess: () => onDeleted([...selected]) });
  };
  return (
    <div className={css.selection} role="group" aria-label="Selected conversations">
      <span role="status">{selected.size} selected</span>
      <Button small look="quiet" onClick={() => onSelect(new Set(all ? [] : shown))}>
        {all ? "Select none" : "Select all"}
      </Button>
      <Button
        small
        look="danger"
        busy={removeAll.isPending}
        disabled={selected.size === 0}
        onClick={() => setAsking(true)}
      >
        Delete…
      </Button>
      {asking && (
        <Confirm
          title={`Delete ${plural(selected.size, "conversation")}?`}
          action="Delete"
          onClose={() => setAsking(false)}
          onConfirm={remove}
        >
          <p>This cannot be undone.</p>
        </Confirm>
      )}
    </div>
  );
}

/** Shows text with the words of a search highlighted. */
function Marked({ text, words }: { text: string; words: string }) {
  const any = words.match(/[\p{L}\p{N}]+/gu)?.join("|");
  if (!any) return text;
  return text.split(new RegExp(`(${any})`, "giu")).map((part, i) => (i % 2 ? <mark key={i}>{part}</mark> : part));
}

function Row({
  conversation: c,
  words,
  here,
  onOpen,
}: {
  conversation: ConversationSummary;
  words: string;
  here: boolean;
  onOpen: () => void;
}) {
  const { rename, remove, fork } = useConversationActions();
  const running = useRunning().get(c.id)?.snapshot().status === "running";
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"rename" | "delete" | null>(null);
  const title = titleOf(c);
  return (
    <div className={css.item} data-here={here}>
      <Link to="/chat/$id" params={{ id: c.id }} aria-current={here ? "page" : undefined} onClick={onOpen}>
        <b>{title}</b>
        <small title={c.passage}>
          {c.passage ? (
            <Marked text={plain(c.passage)} words={words} />
          ) : (
            <>
              {running ? "answering…" : ago(c.updatedAt)}
              {c.title && c.preview ? ` · ${plain(c.preview)}` : ""}
            </>
          )}
        </small>
      </Link>
      <Menu
        trigger={
          <Button look="quiet" small label={`More actions for ${title}`}>
            <Ellipsis aria-hidden="true" />
          </Button>
        }
      >
        <MenuItem icon={<Pencil aria-hidden="true" />} onSelect={() => setAsking("rename")}>
          Rename…
        </MenuItem>
        <MenuItem
          icon={<GitFork aria-hidden="true" />}
          onSelect={() =>
            fork.mutate(
              { id: c.id },
              { onSuccess: (made) => void navigate({ to: "/chat/$id", params: { id: made.id } }) },
            )
          }
        >
          Fork
        </MenuItem>
        <MenuItem icon={<Download aria-hidden="true" />} onSelect={() => void download(c.id, title).catch(toastError)}>
          Export as Markdown
        </MenuItem>
        <MenuLine />
        <MenuItem icon={<Trash2 aria-hidden="true" />} danger onSelect={() => setAsking("delete")}>
          Delete…
        </MenuItem>
      </Menu>
      {asking === "rename" && (
        <Rename
          title={c.title ?? ""}
          onClose={() => setAsking(null)}
          onDone={(to) => rename.mutate({ id: c.id, title: to })}
        />
      )}
      {asking === "delete" && (
        <Confirm
          title="Delete this conversation?"
          action="Delete"
          onClose={() => setAsking(null)}
          onConfirm={() => {
            setAsking(null);
            if (here) void navigate({ to: "/chat" });
            remove.mutate(c.id);
          }}
        >
          <p>“{title}” will be deleted. This cannot be undone.</p>
        </Confirm>
      )}
    </div>
  );
}

/** Removes Markdown syntax from a line. */
const plain = (text: string) => text.replaceAll(/[*`#|]+|^[->]\s|\]\([^)]*\)|\[/g, "").trim();

function Rename({ title, onDone, onClose }: { title: string; onDone: (title: string) => void; onClose: () => void }) {
  const [text, setText] = useState(title);
  const submit = () => {
    if (!text.trim()) return;
    onDone(text.trim());
    onClose();
  };
  return (
    <Dialog
      title="Rename the conversation"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Rename
          </Button>
        </>
      }
    >
      <Field label="Title" required>
        {(props) => (
          <Input
            {...props}
            maxLength={200}
            value={text}
            onFocus={(e) => e.target.select()}
            onChange={(e) => setText(e.target.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}

async function download(id: string, title: string): Promise<void> {
  const file = await take(
    api.GET("/v1/conversations/{id}/export", {
      params: { path: { id }, query: { format: "markdown" } },
      parseAs: "blob",
    }),
  );
  saveFile(`${title.replaceAll(/[^\p{L}\p{N} ._-]/gu, "").slice(0, 60) || id}.md`, file);
}
