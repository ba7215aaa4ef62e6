import { Check, X } from "lucide-react";
import { useState, type ReactNode } from "react";
import { api } from "../api/client";
import { toJson } from "../api/digits";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Code } from "../ui/Code";
import { Field, Input } from "../ui/Field";
import { clock } from "../ui/format";
import { useDecision, type Approval } from "./waiting";

interface Props {
  busy: boolean;
  accept?: boolean;
  yes: () => void;
  always?: () => void;
  no?: () => void;
}

/** Shows the buttons for a decision to people who can decide. */
export function Decision({ busy, accept, yes, always, no }: Props) {
  const { isWorkspaceAdmin } = useSession();
  if (!isWorkspaceAdmin) return <p>A workspace admin will decide.</p>;
  return (
    <div style={{ display: "flex", flexWrap: "wrap", gap: 8 }}>
      <Button look="primary" busy={busy} onClick={yes}>
        <Check aria-hidden="true" />
        {accept ? "Accept" : "Allow once"}
      </Button>
      {always && (
        <Button disabled={busy} onClick={always}>
          Always allow this tool
        </Button>
      )}
      {no && (
        <Button look="danger" disabled={busy} onClick={no}>
          <X aria-hidden="true" />
          Refuse
        </Button>
      )}
    </div>
  );
}

/** Shows the decision on a waiting call. */
export function DecideCall({ approval }: { approval: Approval }) {
  const { busy, decide } = useDecision("approvals");
  const { isWorkspaceAdmin } = useSession();
  const [reason, setReason] = useState("");
  const { id } = approval;
  const decideWith = (decision: "approve" | "always" | "refuse", result: string) => {
    const body = { decision, ...(reason.trim() && { reason: reason.trim() }) };
    void decide(id, () => api.POST("/v1/approvals/{id}", { params: { path: { id } }, body }), result);
  };
  return (
    <>
      {isWorkspaceAdmin && (
        <Field label="Reason (optional)" hint="Shown to the person who made the call and, if you refuse, to the model.">
          {(props) => <Input {...props} value={reason} maxLength={1000} onChange={(e) => setReason(e.target.value)} />}
        </Field>
      )}
      <Decision
        busy={busy === id}
        yes={() => decideWith("approve", "The call was allowed.")}
        always={
          approval.mayAlways
            ? () => decideWith("always", "Calls to this tool are now allowed until its definition changes.")
            : undefined
        }
        no={() => decideWith("refuse", "The call was refused.")}
      />
    </>
  );
}

/** A call that waits where it was made, and the decision on it. The children say what it waits for. */
export const WaitingCall = ({ approval, children }: { approval: Approval; children: ReactNode }) => (
  <>
    <p>
      {children}
      {approval.account && (
        <>
          {" "}
          (with the account <b>{approval.account}</b>)
        </>
      )}
      . It expires at {clock(approval.expiresAt)}.
    </p>
    <Code label="Call arguments" text={toJson(approval.arguments, 2)} wrap />
    <DecideCall approval={approval} />
  </>
);
