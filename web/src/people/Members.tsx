import { Link } from "@tanstack/react-router";
import { Activity, Trash2, UserPlus, UserRound } from "lucide-react";
import { useState } from "react";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Confirm, Dialog } from "../ui/Dialog";
import { Field, Input, Select } from "../ui/Field";
import { Card, Empty, Failure, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { nameOf, putMember, removeMember, useMembers, usePeopleChange, useUsers, type Member } from "./data";

/** Shows the members of the workspace and their roles. */
export function Members() {
  const { workspace, user } = useSession();
  const members = useMembers(workspace.id);
  const change = usePeopleChange();
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Member | null>(null);
  if (members.isLoadingError) return <Failure error={members.error} />;
  if (members.isPending) return <Skeleton lines={4} />;
  const rows = members.data ?? [];
  return (
    <Card
      flush
      title={`Members of ${workspace.name}`}
      actions={
        <Button small onClick={() => setAdding(true)}>
          <UserPlus aria-hidden="true" />
          Add
        </Button>
      }
    >
      {rows.length === 0 ? (
        <Empty icon={<UserRound aria-hidden="true" />} title="No members">
          Admins can add members. Organization admins have access without being members.
        </Empty>
      ) : (
        <Table
          label="Members"
          rows={rows}
          keyOf={(m) => m.user.id}
          columns={[
            {
              title: "Person",
              cell: (m) => (
                <>
                  {nameOf(m.user)}
                  {m.user.id === user.id && " (you)"}
                  {m.user.email && m.user.displayName && <small>{m.user.email}</small>}
                </>
              ),
            },
            {
              title: "Role",
              cell: (m) => (
                <Select
                  aria-label={`Role of ${nameOf(m.user)}`}
                  value={m.role}
                  style={{ width: 120 }}
                  onChange={(e) => change.mutate(putMember(workspace.id, m.user.id, e.target.value as Member["role"]))}
                >
                  <option value="admin">admin</option>
                  <option value="member">member</option>
                </Select>
              ),
            },
            {
              title: "",
              number: true,
              cell: (m) => (
                <span style={{ display: "inline-flex", alignItems: "center", gap: 6 }}>
                  <Link to="/activity" search={{ tab: "audit", person: m.user.id }} title="Activity">
                    <Activity aria-hidden="true" size={16} />
                    <span className="visually-hidden">Activity of {nameOf(m.user)}</span>
                  </Link>
                  <Button small look="quiet" label={`Remove ${nameOf(m.user)}`} onClick={() => setRemoving(m)}>
                    <Trash2 aria-hidden="true" />
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
      {adding && <AddMember known={new Set(rows.map((m) => m.user.id))} onClose={() => setAdding(false)} />}
      {removing && (
        <Confirm
          title={`Remove ${nameOf(removing.user)}?`}
          action="Remove"
          onClose={() => setRemoving(null)}
          onConfirm={() => {
            change.mutate(removeMember(workspace.id, removing.user.id));
            setRemoving(null);
          }}
        >
          <p>
            {removing.user.id === user.id ? "You" : "They"} will lose access to {workspace.name} immediately. Audit
            records are kept.
          </p>
        </Confirm>
      )}
    </Card>
  );
}

function AddMember({ known, onClose }: { known: Set<string>; onClose: () => void }) {
  const { workspace, isOrgAdmin } = useSession();
  const users = useUsers(isOrgAdmin);
  const change = usePeopleChange();
  const [who, setWho] = useState("");
  const [role, setRole] = useState<Member["role"]>("member");
  const others = (users.data ?? []).filter((u) => !known.has(u.id));
  return (
    <Dialog
      title={`Add to ${workspace.name}`}
      onClose={onClose}
      onSubmit={() => {
        if (who) {
          change.mutate(putMember(workspace.id, who, role));
          onClose();
        }
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={!who}>
            Add
          </Button>
        </>
      }
    >
      {users.isLoadingError && <Failure error={users.error} />}
      {!isOrgAdmin && (
        <Field label="Email" required hint="The person must have logged in to this server before.">
          {(props) => <Input {...props} type="email" value={who} onChange={(e) => setWho(e.target.value.trim())} />}
        </Field>
      )}
      {isOrgAdmin && (
        <Field label="Person" required hint="People appear here after their first login.">
          {(props) => (
            <Select {...props} value={who} onChange={(e) => setWho(e.target.value)}>
              <option value="">Choose…</option>
              {others.map((u) => (
                <option key={u.id} value={u.id}>
                  {nameOf(u)}
                  {u.email && u.displayName ? ` (${u.email})` : ""}
                </option>
              ))}
            </Select>
          )}
        </Field>
      )}
      <Field label="Role">
        {(props) => (
          <Select {...props} value={role} onChange={(e) => setRole(e.target.value as Member["role"])}>
            <option value="member">member: uses apps and chats</option>
            <option value="admin">admin: manages apps and members</option>
          </Select>
        )}
      </Field>
    </Dialog>
  );
}
