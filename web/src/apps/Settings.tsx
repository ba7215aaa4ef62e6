import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { AppDetails, ConfigField } from "../api/apps";
import { api } from "../api/client";
import { refresh } from "../api/refresh";
import { Button } from "../ui/Button";
import { Field, Input } from "../ui/Field";
import { Card, Empty, Failure, Skeleton } from "../ui/Surface";
import { toast } from "../ui/Toast";

interface Setting extends Omit<ConfigField, "type"> {
  name: string;
  /** The part of the request that contains the setting. */
  part: "userConfig" | "env";
}

/** Shows the settings of an app. Fields that are left empty do not change. */
export function Settings({ app, details }: { app: string; details?: AppDetails }) {
  const queries = useQueryClient();
  const [values, setValues] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  if (!details) return <Skeleton lines={3} />;
  const fields = settingsOf(details);
  const changed = fields.filter((f) => values[f.name]);
  const save = async () => {
    const of = (part: Setting["part"]) =>
      Object.fromEntries(changed.filter((f) => f.part === part).map((f) => [f.name, values[f.name]!]));
    setBusy(true);
    setError(null);
    try {
      await api.PATCH("/v1/apps/{name}", {
        params: { path: { name: app } },
        body: { userConfig: of("userConfig"), env: of("env") },
      });
      setValues({});
      toast("The settings have been saved.");
    } catch (problem) {
      setError(problem);
    } finally {
      refresh(queries, ["app", "apps", "tools", "health"]);
      setBusy(false);
    }
  };
  if (fields.length === 0)
    return (
      <Card flush>
        <Empty title="No settings">This app has no settings.</Empty>
      </Card>
    );
  return (
    <Card title="Settings">
      <form
        style={{ display: "grid", gap: 16, maxWidth: 560 }}
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {fields.map((f) => (
          <Field key={f.name} label={f.title || f.name} hint={f.description} required={f.required && !f.isSet}>
            {(props) => (
              <Input
                {...props}
                type={f.sensitive ? "password" : "text"}
                autoComplete="off"
                value={values[f.name] ?? ""}
                placeholder={f.isSet ? "Stored. Type to replace it" : undefined}
                onChange={(e) => setValues({ ...values, [f.name]: e.target.value })}
              />
            )}
          </Field>
        ))}
        {error !== null && <Failure error={error} />}
        <div>
          <Button type="submit" look="primary" busy={busy} disabled={changed.length === 0}>
            Save and restart
          </Button>
        </div>
      </form>
    </Card>
  );
}

/** Returns the bundle's fields, followed by the other stored values. */
function settingsOf({ userConfig, env }: AppDetails): Setting[] {
  return [
    ...Object.entries(userConfig).map(([name, field]) => ({ ...field, name, part: "userConfig" as const })),
    ...env
      .filter((name) => !(name in userConfig))
      .map((name) => ({ name, part: "env" as const, required: false, sensitive: true, isSet: true })),
  ];
}
