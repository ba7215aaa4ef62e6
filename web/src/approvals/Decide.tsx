import { Check, X } from "lucide-react";
import { useState } from "react";
import { api } from "../api/client";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Field, Input } from "../ui/Field";
import { useDecision, type Approval } from "./waiting";

interface Props {
  busy: boolean;
  accept?: boolean;
  yes: () => void;
  always?: () => void;
  no?: () => void;
}

/** The buttons of a decision, for those who may decide. */
export function Decision({ busy, accept, yes, always, no }: Props) {
  const { isWorkspaceAdmin } = useSession();
  if (!isWorkspaceAdmin) return <p>An admin of the workspace decides.</p>;
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

/** The decision on a call that waits. */
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
        <Field label="Reason (optional)" hint="Whoever asked reads it, and so does the model when you refuse.">
          {(props) => <Input {...props} value={reason} maxLength={1000} onChange={(e) => setReason(e.target.value)} />}
        </Field>
      )}
      <Decision
        busy={busy === id}
        yes={() => decideWith("approve", "The call may go on.")}
        always={
          approval.mayAlways
            ? () => decideWith("always", "Calls of this tool are allowed until its definition changes.")
            : undefined
        }
        no={() => decideWith("refuse", "The call is refused.")}
      />
    </>
  );
}
