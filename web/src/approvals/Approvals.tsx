import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Check, ShieldCheck, X } from "lucide-react";
import { useState, type ReactNode } from "react";
import type { components } from "../api/schema";
import { request } from "../api/http";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import { ago } from "../ui/format";
import { Differences } from "./Differences";
import { Badge, Card, Empty, Failure, Page, Skeleton } from "../ui/Surface";
import { toast, toastError } from "../ui/Toast";

type Approval = components["schemas"]["Approval"];
type Pin = components["schemas"]["PinChange"];

/** What waits for a person: calls that need leave, and tools that changed. */
export function ApprovalsScreen() {
  return (
    <Page title="Approvals" about="Calls that wait for a person, and tools whose definition changed without a new version.">
      <Calls />
      <Pins />
    </Page>
  );
}

function useDecision(key: string) {
  const queries = useQueryClient();
  const [busy, setBusy] = useState("");
  const decide = async (path: string, body: unknown, said: string) => {
    setBusy(path);
    try {
      await request("POST", path, { body });
      toast(said);
    } catch (error) {
      toastError(error);
    }
    setBusy("");
    refresh(queries, [key]);
  };
  return { busy, decide };
}

function Calls() {
  const { workspace } = useSession();
  const { busy, decide } = useDecision("approvals");
  const calls = useQuery({ queryKey: ["approvals", workspace.id], refetchInterval: 5_000, queryFn: () => request<{ approvals: Approval[] }>("GET", "/v1/approvals") });
  if (calls.error) return <Failure error={calls.error} />;
  if (calls.isPending) return <Skeleton lines={4} />;
  const waiting = calls.data.approvals.filter((a) => a.state === "pending");
  if (waiting.length === 0) return <Card flush><Empty icon={<ShieldCheck aria-hidden="true" />} title="Nothing waits for you">Calls of tools that the policy marks stop here until someone allows them.</Empty></Card>;
  return waiting.map((a) => {
    const path = `/v1/approvals/${encodeURIComponent(a.id)}`;
    return (
      <Card key={a.id} title={a.tool} actions={<Badge tone="warn" dot pulse>{`waits, ends ${ago(a.expiresAt)}`}</Badge>}>
        <p>{who(a)} wants to call this tool. Asked {ago(a.requestedAt)}.</p>
        <Code label="Arguments" text={JSON.stringify(a.arguments, null, 2)} wrap />
        <Buttons busy={busy === path} yes={() => void decide(path, { decision: "approve" }, "The call may go on.")} no={() => void decide(path, { decision: "refuse" }, "The call is refused.")} />
      </Card>
    );
  });
}

function Pins() {
  const { workspace } = useSession();
  const { busy, decide } = useDecision("pins");
  const pins = useQuery({ queryKey: ["pins", workspace.id], queryFn: () => request<{ pins: Pin[] }>("GET", "/v1/pins") });
  if (pins.error) return <Failure error={pins.error} />;
  return pins.data?.pins.map((p) => {
    const path = `/v1/pins/${encodeURIComponent(p.id)}`;
    const refuse = p.state === "waiting" ? () => void decide(path, { decision: "refuse" }, "The tool stays held back.") : undefined;
    return (
      <Card key={p.id} title={`${p.server} · ${p.tool}`} actions={<Badge tone="warn">{p.state === "refused" ? "refused" : "changed"}</Badge>}>
        <p>
          {p.renamedFrom
            ? `This tool seems to be ${p.renamedFrom} under another name.`
            : `The app changed this tool without a new version${p.version && ` (it is still ${p.version})`}.`} Models and clients do not get it until the change is accepted. Noticed {ago(p.since)}.
        </p>
        <Differences changes={p.changes} />
        <Buttons busy={busy === path} accept yes={() => void decide(path, { decision: "accept" }, "The change is accepted.")} no={refuse} />
      </Card>
    );
  });
}

function Buttons({ busy, accept, yes, no }: { busy: boolean; accept?: boolean; yes: () => void; no?: () => void }): ReactNode {
  const { isWorkspaceAdmin } = useSession();
  if (!isWorkspaceAdmin) return <p>An admin of the workspace decides.</p>;
  return (
    <div style={{ display: "flex", gap: 8 }}>
      <Button look="primary" busy={busy} onClick={yes}><Check aria-hidden="true" />{accept ? "Accept" : "Allow once"}</Button>
      {no && <Button look="danger" disabled={busy} onClick={no}><X aria-hidden="true" />Refuse</Button>}
    </div>
  );
}

const who = (a: Approval) => a.caller.displayName || a.caller.email || a.caller.id;
