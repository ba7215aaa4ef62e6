import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { api, take, type Schemas } from "../api/client";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import { Confirm, Dialog } from "../ui/Dialog";
import { Field, Input, Select } from "../ui/Field";
import { ago, moment } from "../ui/format";
import { Badge, Card, Empty, Failure, Notice, Skeleton } from "../ui/Surface";
import { Table } from "../ui/Table";
import { toast, toastError } from "../ui/Toast";

type Key = Schemas["APIKey"];

/** Shows the API keys. A new key is shown only once. */
export function Keys({ onMade }: { onMade: (key: string) => void }) {
  const { workspace } = useSession();
  const queries = useQueryClient();
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState("");
  const [revoking, setRevoking] = useState<Key | null>(null);
  const keys = useQuery({
    queryKey: ["keys", workspace.id],
    queryFn: async () => (await take(api.GET("/v1/keys"))).keys,
  });
  const revoke = async (key: Key) => {
    setRevoking(null);
    try {
      await take(api.DELETE("/v1/keys/{id}", { params: { path: { id: key.id } } }));
      toast(`The key ${key.name} has been revoked.`);
    } catch (error) {
      toastError(error);
    }
    refresh(queries, ["keys"]);
  };
  return (
    <Card
      flush
      title="API keys"
      actions={
        <Button small onClick={() => setMaking(true)}>
          <KeyRound aria-hidden="true" />
          New key
        </Button>
      }
    >
      {made && (
        <div style={{ padding: 16, display: "grid", gap: 12 }}>
          <Notice tone="warn">Copy the key now. The server only stores a hash and never shows the key again.</Notice>
          <Code label="New key" text={made} wrap />
        </div>
      )}
      {keys.isLoadingError ? (
        <Failure error={keys.error} />
      ) : keys.isPending ? (
        <Skeleton />
      ) : keys.data.length === 0 ? (
        <Empty title="No keys yet">A key gives a program or client access to one workspace, with a certain role.</Empty>
      ) : (
        <Table
          label="API keys"
          rows={keys.data}
          keyOf={(k) => k.id}
          columns={[
            {
              title: "Name",
              cell: (k) => (
                <>
                  <b>{k.name}</b> <Badge>{k.role}</Badge>
                  <small>acts as {k.user.email || k.user.displayName || k.user.id}</small>
                </>
              ),
            },
            {
              title: "Last used",
              cell: (k) => (
                <>
                  {k.lastUsedAt ? ago(k.lastUsedAt) : "never"}
                  <small>{k.expiresAt ? `expires ${moment(k.expiresAt)}` : "does not expire"}</small>
                </>
              ),
            },
            {
              title: "",
              number: true,
              cell: (k) => (
                <Button small look="danger" onClick={() => setRevoking(k)}>
                  Revoke
                </Button>
              ),
            },
          ]}
        />
      )}
      {making && (
        <NewKey
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMade(key);
            onMade(key);
            refresh(queries, ["keys"]);
          }}
        />
      )}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name}?`}
          action="Revoke"
          onClose={() => setRevoking(null)}
          onConfirm={() => void revoke(revoking)}
        >
          <p>Everything that uses this key will lose access immediately.</p>
        </Confirm>
      )}
    </Card>
  );
}

function NewKey({ onMade, onClose }: { onMade: (key: string) => void; onClose: () => void }) {
  const { workspace, isWorkspaceAdmin } = useSession();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Key["role"]>("member");
  const [days, setDays] = useState("90");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async () => {
    if (!name.trim()) return;
    setBusy(true);
    try {
      const expiresAt = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : undefined;
      const { key } = await take(api.POST("/v1/keys", { body: { name: name.trim(), role, expiresAt } }));
      onMade(key);
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="New API key"
      onClose={onClose}
      onSubmit={() => void submit()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={busy}>
            Create key
          </Button>
        </>
      }
    >
      <Field label="Name" required hint="What you will use the key for">
        {(props) => <Input {...props} value={name} onChange={(e) => setName(e.target.value)} />}
      </Field>
      <Field label={`Role in ${workspace.name}`}>
        {(props) => (
          <Select {...props} value={role} onChange={(e) => setRole(e.target.value as Key["role"])}>
            <option value="member">member</option>
            {isWorkspaceAdmin && <option value="admin">admin</option>}
          </Select>
        )}
      </Field>
      <Field label="Expires">
        {(props) => (
          <Select {...props} value={days} onChange={(e) => setDays(e.target.value)}>
            <option value="30">in 30 days</option>
            <option value="90">in 90 days</option>
            <option value="365">in a year</option>
            <option value="">never</option>
          </Select>
        )}
      </Field>
      {error !== null && <Failure error={error} />}
    </Dialog>
  );
}
