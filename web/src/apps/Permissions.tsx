import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { usePermissions } from "../api/apps";
import { api, take, type Schemas } from "../api/client";
import { refresh } from "../api/refresh";
import { Button } from "../ui/Button";
import { Field, Input, Select } from "../ui/Field";
import { ago, moment, plural } from "../ui/format";
import { Badge, Card, Failure, Notice, Skeleton, type Tone } from "../ui/Surface";
import { Table } from "../ui/Table";
import { toast } from "../ui/Toast";

type Access = Schemas["Access"];
type Kind = Access["kind"];
type Change = Schemas["PermissionChange"];
type Granted = Schemas["Permissions"]["permissions"][number];

const kinds: Record<Kind, string> = {
  read: "Read files",
  write: "Read and write files",
  net: "Connect to a service on this machine",
  netOnly: "Connect to this destination only",
  env: "Server environment variable",
};
const states: Record<Granted["state"], [string, Tone]> = {
  granted: ["allowed", "good"],
  denied: ["denied", "plain"],
  pending: ["needs confirmation", "warn"],
  blocked: ["blocked", "bad"],
};

/** Shows an app's permissions, requests and denials. */
export function Permissions({ app }: { app: string }) {
  const queries = useQueryClient();
  const path = { params: { path: { name: app } } };
  const found = usePermissions(app);
  const change = useMutation({
    mutationFn: (body: Change) => take(api.PATCH("/v1/apps/{name}/permissions", { ...path, body })),
    onSuccess: (now) => {
      if (now.lastError) toast(`${app} does not start: ${now.lastError}`, true);
      else toast("The change has taken effect.");
    },
    onSettled: () => refresh(queries, ["permissions", "apps", "app", "tools", "health"]),
  });
  if (found.isLoadingError) return <Failure error={found.error} />;
  if (found.isPending) return <Skeleton lines={4} />;
  const { permissions, missing, configured, denials, hints, note } = found.data;
  const fixed = [
    ...configured.write.map((target) => ["write", target] as const),
    ...configured.read.map((target) => ["read", target] as const),
    ...configured.network.filter((target) => target.includes(":")).map((target) => ["net", target] as const),
  ];
  const allow = (access: Access) => change.mutate({ allow: [access] });
  const busy = change.isPending;
  return (
    <div style={{ display: "grid", gap: 20 }}>
      {note && <Notice tone="warn">{note}</Notice>}
      {hints.map((hint) => (
        <Notice key={hint} tone="warn">
          {hint}
        </Notice>
      ))}
      {missing.length > 0 && (
        <Card title="Requested">
          {missing.map((ask) => {
            const wanted = ask.choice?.length ? (ask.choice as Kind[]) : [ask.kind];
            return (
              <div
                key={`${ask.kind} ${ask.target}`}
                style={{ display: "flex", flexWrap: "wrap", gap: 8, alignItems: "center" }}
              >
                <span style={{ flex: 1, minWidth: 200 }}>
                  <code style={{ overflowWrap: "anywhere" }}>{ask.target}</code>
                  <br />
                  <small>{ask.reason}</small>
                </span>
                {wanted.map((kind) => (
                  <Button key={kind} small disabled={busy} onClick={() => allow({ kind, target: ask.target })}>
                    Allow: {kinds[kind].toLowerCase()}
                  </Button>
                ))}
                {ask.also && (
                  <Button small disabled={busy} onClick={() => allow(ask.also!)}>
                    Allow {ask.also.target}
                  </Button>
                )}
                <Button
                  small
                  look="quiet"
                  disabled={busy}
                  onClick={() => change.mutate({ deny: [{ kind: ask.kind, target: ask.target }] })}
                >
                  Deny
                </Button>
              </div>
            );
          })}
        </Card>
      )}
      <Card flush title="Decisions">
        {permissions.length === 0 ? (
          <p style={{ padding: 16 }}>
            No decisions yet.{fixed.length === 0 && " The app can only use its own files and data."}
          </p>
        ) : (
          <Table
            label="Permissions"
            rows={permissions}
            keyOf={(p) => `${p.kind} ${p.target}`}
            columns={[
              {
                title: "What",
                cell: (p) => (
                  <>
                    <code style={{ overflowWrap: "anywhere" }}>{p.target}</code>
                    <small>{kinds[p.kind]}</small>
                  </>
                ),
              },
              {
                title: "State",
                cell: (p) => (
                  <>
                    <Badge tone={states[p.state][1]}>{states[p.state][0]}</Badge>
                    <small>{p.reason ?? moment(p.at)}</small>
                  </>
                ),
              },
              {
                title: "",
                number: true,
                cell: (p) => (
                  <span style={{ display: "inline-flex", gap: 6 }}>
                    {p.state !== "granted" && p.state !== "blocked" && (
                      <Button small disabled={busy} onClick={() => allow({ kind: p.kind, target: p.target })}>
                        Allow<span className="visually-hidden"> {p.target}</span>
                      </Button>
                    )}
                    <Button
                      small
                      disabled={busy}
                      onClick={() => change.mutate({ revoke: [{ kind: p.kind, target: p.target }] })}
                    >
                      Revoke<span className="visually-hidden"> {p.target}</span>
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
        {fixed.length > 0 && (
          <ul style={{ padding: 16, display: "grid", gap: 6 }}>
            {fixed.map(([kind, target]) => (
              <li key={kind + target}>
                <code>{target}</code> <small>{kinds[kind]}, allowed by the configuration</small>
              </li>
            ))}
          </ul>
        )}
      </Card>
      <AllowMore busy={busy} onAllow={allow} />
      {denials.length > 0 && (
        <Card flush title="Denied">
          <Table
            label="Denials"
            rows={denials}
            keyOf={(d) => `${d.kind} ${d.target}`}
            columns={[
              {
                title: "What",
                cell: (d) => (
                  <>
                    <code style={{ overflowWrap: "anywhere" }}>{d.target}</code>
                    <small>
                      {kinds[d.kind]}
                      {!d.observed && ", inferred from a failed start"}
                    </small>
                  </>
                ),
              },
              {
                title: "When",
                cell: (d) => (
                  <>
                    {ago(d.last)}
                    <small>{plural(d.count, "time")}</small>
                  </>
                ),
              },
              {
                title: "",
                number: true,
                cell: (d) =>
                  d.observed && (
                    <Button small disabled={busy} onClick={() => allow({ kind: d.kind, target: d.target })}>
                      Allow<span className="visually-hidden"> {d.target}</span>
                    </Button>
                  ),
              },
            ]}
          />
        </Card>
      )}
    </div>
  );
}

function AllowMore({ busy, onAllow }: { busy: boolean; onAllow: (access: Access) => void }) {
  const [kind, setKind] = useState<Kind>("read");
  const [target, setTarget] = useState("");
  const submit = () => {
    if (!target.trim()) return;
    onAllow({ kind, target: target.trim() });
    setTarget("");
  };
  const example = {
    read: "/srv/notes",
    write: "/srv/notes",
    net: "localhost:6379",
    netOnly: "api.example.com:443",
    env: "HTTPS_PROXY",
  }[kind];
  return (
    <Card title="Allow something else">
      <form
        style={{ display: "grid", gap: 12 }}
        onSubmit={(e) => {
          e.preventDefault();
          submit();
        }}
      >
        <Field label="Access">
          {(props) => (
            <Select {...props} value={kind} onChange={(e) => setKind(e.target.value as Kind)}>
              {(Object.keys(kinds) as Kind[]).map((k) => (
                <option key={k} value={k}>
                  {kinds[k]}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Target">
          {(props) => (
            <Input {...props} mono placeholder={example} value={target} onChange={(e) => setTarget(e.target.value)} />
          )}
        </Field>
        <div>
          <Button type="submit" busy={busy} disabled={!target.trim()}>
            Allow
          </Button>
        </div>
      </form>
    </Card>
  );
}
