import { useState } from "react";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Input } from "../ui/Field";
import { Failure } from "../ui/Surface";
import type { Installation } from "./installation";

/** Asks for settings without which the app cannot start. */
export function CredentialsStep({ install, onClose }: { install: Installation; onClose: () => void }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [tried, setTried] = useState(false);
  const fields = install.missing ?? [];
  const submit = () => {
    setTried(true);
    if (fields.every((f) => values[f.name]?.trim())) install.withSettings(values);
  };
  return (
    <Dialog
      title={`Settings for ${install.label}`}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={install.back}>Back</Button>
          <Button type="submit" look="primary" busy={install.busy}>
            Install
          </Button>
        </>
      }
    >
      <p>The app needs these settings to start. The server stores secrets and never shows them again.</p>
      {fields.map((f) => (
        <Field
          key={f.name}
          label={f.title || f.name}
          hint={f.description}
          required
          error={tried && !values[f.name]?.trim() ? "This field is required." : undefined}
        >
          {(props) => (
            <Input
              {...props}
              type={f.sensitive ? "password" : "text"}
              autoComplete="off"
              value={values[f.name] ?? ""}
              onChange={(e) => setValues({ ...values, [f.name]: e.target.value })}
            />
          )}
        </Field>
      ))}
      {install.error && <Failure error={install.error} />}
    </Dialog>
  );
}
