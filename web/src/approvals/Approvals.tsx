import { useQueryClient } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import { toJson } from "../api/digits";
import { AccountOf } from "../accounts/AccountOf";
import { api } from "../api/client";
import { refresh } from "../api/refresh";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import { ago } from "../ui/format";
import { Badge, Card, Empty, Failure, Page, Skeleton } from "../ui/Surface";
import { toast, toastError } from "../ui/Toast";
import { DecideCall, Decision } from "./Decide";
import { Differences } from "./Differences";
import { isPending, useAlways, useApprovals, useDecided, useDecision, usePins, type Approval } from "./waiting";

/** Shows waiting calls, changed tools and earlier decisions. */
export function ApprovalsScreen() {
  return (
    <Page
      title="Approvals"
      about="Tool calls that are waiting for a decision, and tools that changed without a new version of their app."
    >
      <Calls />
      <Pins />
      <Always />
      <History />
    </Page>
  );
}

function Calls() {
  const calls = useApprovals({ every: 5_000 });
  if (calls.isLoadingError) return <Failure error={calls.error} />;
  if (calls.isPending) return <Skeleton lines={4} />;
  const waiting = calls.data.filter(isPending);
  if (waiting.length === 0)
    return (
      <Card flush>
        <Empty icon={<ShieldCheck aria-hidden="true" />} title="Nothing is waiting for approval">
          Calls to tools that need approval appear here until an admin decides.
        </Empty>
      </Card>
    );
  return waiting.map((a) => (
    <Card
      key={a.id}
      title={a.tool}
      actions={<Badge tone="warn" dot pulse>{`waiting, expires ${ago(a.expiresAt)}`}</Badge>}
    >
      <p>
        {name(a.caller)} wants to call this tool
        {a.account && (
          <>
            {" "}
            with the account <b>{a.account}</b>
          </>
        )}
        . Requested {ago(a.requestedAt)}.
      </p>
      <Code label="Arguments" text={toJson(a.arguments, 2)} wrap />
      <DecideCall approval={a} />
    </Card>
  ));
}

function Pins() {
  const { busy, decide } = useDecision("pins");
  const pins = usePins();
  if (pins.isLoadingError) return <Failure error={pins.error} />;
  return pins.data?.map((p) => {
    const decideWith = (decision: "accept" | "refuse", result: string) =>
      void decide(
        p.id,
        () => api.POST("/v1/pins/{id}", { params: { path: { id: p.id } }, body: { decision } }),
        result,
      );
    const refuse =
      p.state === "waiting"
        ? () => decideWith("refuse", "The change was refused. The tool stays held back.")
        : undefined;
    return (
      <Card
        key={p.id}
        title={`${p.server} · ${p.tool}`}
        actions={<Badge tone="warn">{p.state === "refused" ? "refused" : "changed"}</Badge>}
      >
        <p>
          {p.renamedFrom
            ? `This tool appears to be ${p.renamedFrom} under a new name.`
            : p.account
              ? "The app changed this tool for one account."
              : `The app changed this tool without a new version${p.version && ` (it is still ${p.version})`}.`}{" "}
          {p.account ? (
            <>
              Calls with <AccountOf id={p.account} />
            </>
          ) : (
            "Models and clients"
          )}{" "}
          cannot use the tool until an admin accepts the change. Noticed {ago(p.since)}.
        </p>
        <Differences changes={p.changes} />
        <Decision
          busy={busy === p.id}
          accept
          yes={() => decideWith("accept", "The change was accepted.")}
          no={refuse}
        />
      </Card>
    );
  });
}

/** Shows the tools that are always allowed. */
function Always() {
  const queries = useQueryClient();
  const { data = [] } = useAlways();
  const withdraw = async (id: string, tool: string) => {
    try {
      await api.DELETE("/v1/approvals/always/{id}", { params: { path: { id } } });
      toast(`Calls to ${tool} need approval again.`);
    } catch (error) {
      toastError(error, () => void withdraw(id, tool));
    }
    refresh(queries, ["always"]);
  };
  return data.map((one) => (
    <Card
      key={one.id}
      title={one.tool}
      actions={<Button onClick={() => void withdraw(one.id, one.tool)}>Require approval</Button>}
    >
      <p>
        {name(one.grantedBy)} allowed all calls {ago(one.since)}, until the tool’s definition changes.
      </p>
    </Card>
  ));
}

/** Shows earlier decisions. */
function History() {
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = useDecided();
  const decided = data?.pages.flatMap((page) => page.approvals) ?? [];
  if (decided.length === 0) return null;
  return (
    <Card title="Earlier decisions">
      {decided.map((a) => (
        <details key={a.id}>
          <summary>
            <Badge tone={a.state === "refused" ? "bad" : "good"}>
              {a.state === "refused" ? "refused" : a.always ? "always allowed" : "allowed"}
            </Badge>{" "}
            <b>{a.tool}</b>
            {a.account && ` as ${a.account}`} for {name(a.caller)}, by {a.decider ? name(a.decider) : a.decidedBy}
            {a.decidedAt && ` ${ago(a.decidedAt)}`}
            {a.reason && <>: {a.reason}</>}
          </summary>
          {outcome[a.state] && <p>{outcome[a.state]}</p>}
          <Code label="Arguments" text={toJson(a.arguments, 2)} wrap />
        </details>
      ))}
      {hasNextPage && (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show earlier decisions
        </Button>
      )}
    </Card>
  );
}

const outcome: Partial<Record<Approval["state"], string>> = {
  used: "The call was made.",
  approved: "The call has not been made yet.",
  expired: "The call was not made in time.",
  cancelled: "The call was cancelled before it was made.",
};

const name = (person: Approval["caller"]) => person.displayName || person.email || person.id;
