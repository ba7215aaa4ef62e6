import { Link, useNavigate } from "@tanstack/react-router";
import { Download, Ellipsis, GitFork, Pencil, SquarePen, Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { api, take, type ConversationSummary } from "../api/client";
import { useConversationActions, useConversations } from "../api/conversations";
import { Button } from "../ui/Button";
import { Confirm, Dialog } from "../ui/Dialog";
import { Field, Input, Search } from "../ui/Field";
import { ago } from "../ui/format";
import { Menu, MenuItem, MenuLine } from "../ui/Menu";
import { Empty, Failure, Skeleton } from "../ui/Surface";
import { toastError } from "../ui/Toast";
import { VirtualRows } from "../ui/VirtualRows";
import { useRunning } from "./runs";
import css from "./chat.module.css";

/** The person's conversations: searched, renamed, deleted. */
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
  return (
    <aside className={css.side} data-open={open} aria-label="Conversations">
      <div className={css.sideHead}>
        <Search label="Search conversations" value={query} onChange={(e) => setQuery(e.target.value)} />
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
      </div>
      <div className={css.sideList}>
        {pages.isLoadingError ? (
          <Failure error={pages.error} />
        ) : pages.isPending ? (
          <div style={{ padding: 16 }}>
            <Skeleton lines={5} />
          </div>
        ) : all.length === 0 ? (
          <Empty title={words ? "Nothing found" : "No conversations yet"} />
        ) : (
          <VirtualRows
            label="Conversations"
            items={all}
            size={51}
            max="fill"
            keyOf={(c) => c.id}
            onEnd={() => {
              if (pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage({ cancelRefetch: false });
            }}
            render={(c) => <Row conversation={c} here={c.id === here} onOpen={onClose} />}
          />
        )}
      </div>
    </aside>
  );
}

function Row({
  conversation: c,
  here,
  onOpen,
}: {
  conversation: ConversationSummary;
  here: boolean;
  onOpen: () => void;
}) {
  const { rename, remove, fork } = useConversationActions();
  const running = useRunning().get(c.id)?.snapshot().status === "running";
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"rename" | "delete" | null>(null);
  const title = c.title || c.preview || "New conversation";
  return (
    <div className={css.item} data-here={here}>
      <Link to="/chat/$id" params={{ id: c.id }} aria-current={here ? "page" : undefined} onClick={onOpen}>
        <b>{title}</b>
        <small>
          {running ? "answering…" : ago(c.updatedAt)}
          {c.title && c.preview ? ` · ${plain(c.preview)}` : ""}
        </small>
      </Link>
      <Menu
        trigger={
          <Button look="quiet" small label={`More for ${title}`}>
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
            remove.mutate(c.id, {
              onSuccess: () => {
                if (here) void navigate({ to: "/chat" });
              },
            });
          }}
        >
          <p>“{title}” will be gone for good.</p>
        </Confirm>
      )}
    </div>
  );
}

/** The words of a line of Markdown. */
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
          <Input {...props} maxLength={200} value={text} autoFocus onChange={(e) => setText(e.target.value)} />
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
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${title.replaceAll(/[^\p{L}\p{N} ._-]/gu, "").slice(0, 60) || id}.md`;
  link.click();
  URL.revokeObjectURL(link.href);
}
