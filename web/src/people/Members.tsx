import { UserPlus, UserRound } from "lucide-react";
import { useState } from "react";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Confirm, Dialog } from "../ui/Dialog";
import { Field, Select } from "../ui/Field";
import { Card, Empty, Failure, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { idOf, nameOf, useMembers, usePeopleChange, useUsers, type Member } from "./data";

/** The members of the workspace and their roles. */
export function Members() {
  const { workspace, user } = useSession();
  const members = useMembers(workspace.id);
  const change = usePeopleChange();
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Member | null>(null);
  const rename = (m: Member) => nameOf(m.user ?? { ...m, id: idOf(m) });
  if (members.error) return <Failure error={members.error} />;
  if (members.isPending) return <Skeleton lines={4} />;
  const rows = members.data ?? [];
  return (
    <Card flush title={`Members of ${workspace.name}`} actions={<Button small onClick={() => setAdding(true)}><UserPlus aria-hidden="true" />Add</Button>}>
      {rows.length === 0 ? <Empty icon={<UserRound aria-hidden="true" />} title="No members">People become members when an admin adds them. Admins of the organization get in anyway.</Empty> : (
        <Table
          label="Members" rows={rows} keyOf={idOf}
          columns={[
            { title: "Person", cell: (m) => <>{rename(m)}{idOf(m) === user.id && " (you)"}</> },
            { title: "Email", cell: (m) => m.user?.email ?? m.email ?? "–" },
            {
              title: "Role", cell: (m) => (
                <Select aria-label={`Role of ${rename(m)}`} value={m.role} style={{ width: 120 }} onChange={(e) => change.mutate({ tool: "manage_workspaces", action: "put_member", workspace: workspace.id, user: idOf(m), role: e.target.value })}>
                  <option value="admin">admin</option>
                  <option value="member">member</option>
                </Select>
              ),
            },
            { title: "", number: true, cell: (m) => <Button small look="danger" onClick={() => setRemoving(m)}>Remove</Button> },
          ]}
        />
      )}
      {adding && <AddMember known={new Set(rows.map(idOf))} onClose={() => setAdding(false)} />}
      {removing && (
        <Confirm title={`Remove ${rename(removing)}?`} action="Remove" onClose={() => setRemoving(null)} onConfirm={() => { change.mutate({ tool: "manage_workspaces", action: "remove_member", workspace: workspace.id, user: idOf(removing) }); setRemoving(null); }}>
          <p>They lose access to {workspace.name} at once. What they did stays.</p>
        </Confirm>
      )}
    </Card>
  );
}

function AddMember({ known, onClose }: { known: Set<string>; onClose: () => void }) {
  const { workspace } = useSession();
  const users = useUsers();
  const change = usePeopleChange();
  const [who, setWho] = useState("");
  const [role, setRole] = useState("member");
  const others = (users.data ?? []).filter((u) => !known.has(u.id));
  return (
    <Dialog title={`Add to ${workspace.name}`} onClose={onClose} onSubmit={() => { if (who) { change.mutate({ tool: "manage_workspaces", action: "put_member", workspace: workspace.id, user: who, role }); onClose(); } }} footer={<><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" disabled={!who}>Add</Button></>}>
      {users.error && <Failure error={users.error} />}
      <Field label="Person" required hint="People are known here after their first login.">
        {(props) => (
          <Select {...props} value={who} onChange={(e) => setWho(e.target.value)}>
            <option value="">Choose…</option>
            {others.map((u) => <option key={u.id} value={u.id}>{nameOf(u)}{u.email && u.displayName ? ` (${u.email})` : ""}</option>)}
          </Select>
        )}
      </Field>
      <Field label="Role">{(props) => <Select {...props} value={role} onChange={(e) => setRole(e.target.value)}><option value="member">member: uses apps and chats</option><option value="admin">admin: manages apps and members</option></Select>}</Field>
    </Dialog>
  );
}
