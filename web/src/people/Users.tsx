import { Trash2 } from "lucide-react";
import { useState } from "react";
import type { User } from "../api/client";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Confirm } from "../ui/Dialog";
import { Search, Select } from "../ui/Field";
import { Badge, Card, Empty, Failure, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { deleteUser, nameOf, setRole, usePeopleChange, useUsers } from "./data";

/** Shows everyone who has logged in, and their role in the organization. */
export function Users() {
  const { user: me } = useSession();
  const users = useUsers();
  const change = usePeopleChange();
  const [query, setQuery] = useState("");
  const [deleting, setDeleting] = useState<User | null>(null);
  if (users.isLoadingError) return <Failure error={users.error} />;
  if (users.isPending) return <Skeleton lines={4} />;
  const found = (users.data ?? []).filter((u) =>
    `${u.displayName} ${u.email} ${u.id}`.toLowerCase().includes(query.toLowerCase()),
  );
  return (
    <Card
      flush
      title="Everyone"
      actions={<Search label="Search people" value={query} onChange={(e) => setQuery(e.target.value)} />}
    >
      {found.length === 0 ? (
        <Empty title="No matches">People appear here after their first login.</Empty>
      ) : (
        <Table
          label="People"
          rows={found.slice(0, 500)}
          keyOf={(u) => u.id}
          columns={[
            {
              title: "Person",
              cell: (u) => (
                <>
                  {nameOf(u)}
                  {u.id === me.id && " (you)"}{" "}
                  {u.suspended && (
                    <Badge
                      tone="warn"
                      title="No identity provider knows this user. They cannot log in, and their keys are refused."
                    >
                      suspended
                    </Badge>
                  )}
                  {u.email && u.displayName && <small>{u.email}</small>}
                </>
              ),
            },
            {
              title: "Role in the organization",
              cell: (u) => (
                <Select
                  aria-label={`Role of ${nameOf(u)}`}
                  value={u.orgRole}
                  style={{ width: 120 }}
                  onChange={(e) => change.mutate(setRole(u.id, e.target.value as User["orgRole"]))}
                >
                  {["owner", "admin", "member"].map((role) => (
                    <option key={role}>{role}</option>
                  ))}
                </Select>
              ),
            },
            {
              title: "",
              number: true,
              cell: (u) =>
                u.id !== me.id && (
                  <Button small look="quiet" label={`Delete ${nameOf(u)}`} onClick={() => setDeleting(u)}>
                    <Trash2 aria-hidden="true" />
                  </Button>
                ),
            },
          ]}
        />
      )}
      {deleting && (
        <Confirm
          title={`Delete ${nameOf(deleting)}?`}
          action="Delete"
          onClose={() => setDeleting(null)}
          onConfirm={() => {
            change.mutate(deleteUser(deleting.id));
            setDeleting(null);
          }}
        >
          <p>
            Their conversations and everything else that belongs only to them will be deleted. This cannot be undone.
          </p>
        </Confirm>
      )}
    </Card>
  );
}
