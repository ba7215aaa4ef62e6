import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { refresh } from "../api/refresh";
import { useSession } from "../api/session";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Textarea } from "../ui/Field";
import { Failure } from "../ui/Surface";
import { toast } from "../ui/Toast";

const longest = 20_000; // characters

/** Shows the instructions that every model gets in a workspace. Admins can change them, and members can read them. */
export function Instructions({ onClose }: { onClose: () => void }) {
  const { workspace, instructions, isWorkspaceAdmin } = useSession();
  const queries = useQueryClient();
  const [text, setText] = useState(instructions);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const title = `Instructions for ${workspace.name}`;
  if (!isWorkspaceAdmin) {
    return (
      <Dialog title={title} onClose={onClose}>
        <p style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>{instructions}</p>
      </Dialog>
    );
  }
  const save = async () => {
    setBusy(true);
    try {
      await api.PATCH("/v1/workspace", { body: { instructions: text.trim() } });
      refresh(queries, ["bootstrap"]);
      toast("The instructions have been saved. They apply from the next message on.");
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      wide
      onClose={onClose}
      onSubmit={() => void save()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={busy} disabled={text.trim() === instructions}>
            Save
          </Button>
        </>
      }
    >
      <Field
        label="Instructions"
        hint="Every model gets these instructions in every chat of this workspace. Members can read them, so do not include secrets."
      >
        {(props) => (
          <Textarea
            {...props}
            rows={10}
            maxLength={longest}
            value={text}
            placeholder="Answer briefly. Our customers are in Norway, so show prices in kroner."
            onChange={(e) => setText(e.target.value)}
          />
        )}
      </Field>
      {error !== null && <Failure error={error} />}
    </Dialog>
  );
}
