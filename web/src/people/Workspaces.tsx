import { Plus } from "lucide-react";
import { useState } from "react";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Confirm, Dialog } from "../ui/Dialog";
import { Field, Input } from "../ui/Field";
import { count } from "../ui/format";
import { Badge, Card, Failure, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import {
  createWorkspace,
  deleteWorkspace,
  renameWorkspace,
  usePeopleChange,
  useWorkspaces,
  type WorkspaceInfo,
} from "./data";

/** Shows the workspaces of the server. */
export function WorkspaceList() {
  const { workspace: here, workspaces: mine, switchTo } = useSession();
  const all = useWorkspaces();
  const change = usePeopleChange();
  const [editing, setEditing] = useState<WorkspaceInfo | "new" | null>(null);
  const [deleting, setDeleting] = useState<WorkspaceInfo | null>(null);
  if (all.isLoadingError) return <Failure error={all.error} />;
  if (all.isPending) return <Skeleton lines={4} />;
  return (
    <Card
      flush
      title="Workspaces"
      actions={
        <Button small onClick={() => setEditing("new")}>
          <Plus aria-hidden="true" />
          New workspace
        </Button>
      }
    >
      <Table
        label="Workspaces"
        rows={all.data ?? []}
        keyOf={(w) => w.id}
        columns={[
          {
            title: "Name",
            cell: (w) => (
              <>
                {w.name} {w.id === here.id && <Badge tone="accent">here</Badge>}{" "}
                {w.personalOf && <Badge>personal</Badge>}
              </>
            ),
          },
          { title: "ID", cell: (w) => <code>{w.id}</code> },
          { title: "Members", number: true, cell: (w) => count(w.members) },
          {
            title: "",
            number: true,
            cell: (w) => (
              <span style={{ display: "inline-flex", gap: 6 }}>
                {w.id !== here.id && mine.some((m) => m.id === w.id) && (
                  <Button small onClick={() => switchTo(w.id)}>
                    Open
                  </Button>
                )}
                <Button small onClick={() => setEditing(w)}>
                  Rename
                </Button>
                <Button small look="danger" onClick={() => setDeleting(w)}>
                  Delete
                </Button>
              </span>
            ),
          },
        ]}
      />
      {editing && (
        <NameDialog
          name={editing === "new" ? "" : editing.name}
          title={editing === "new" ? "New workspace" : `Rename ${editing.name}`}
          onClose={() => setEditing(null)}
          onDone={(name) =>
            change.mutate(editing === "new" ? createWorkspace(name) : renameWorkspace(editing.id, name))
          }
        />
      )}
      {deleting && (
        <Confirm
          title={`Delete ${deleting.name}?`}
          action="Delete"
          onClose={() => setDeleting(null)}
          onConfirm={() => {
            change.mutate(deleteWorkspace(deleting.id));
            setDeleting(null);
          }}
        >
          <p>You cannot delete a workspace with apps, a personal workspace or the default workspace.</p>
        </Confirm>
      )}
    </Card>
  );
}

function NameDialog({
  name,
  title,
  onDone,
  onClose,
}: {
  name: string;
  title: string;
  onDone: (name: string) => void;
  onClose: () => void;
}) {
  const [text, setText] = useState(name);
  const submit = () => {
    if (!text.trim()) return;
    onDone(text.trim());
    onClose();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Save
          </Button>
        </>
      }
    >
      <Field label="Name" required>
        {(props) => <Input {...props} value={text} onChange={(e) => setText(e.target.value)} />}
      </Field>
    </Dialog>
  );
}
