import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { AppDetails, Setting } from "../api/apps";
import type { App } from "../api/client";
import { request } from "../api/http";
import { Button } from "../ui/Button";
import { Field, Input } from "../ui/Field";
import { Card, Empty, Failure } from "../ui/Surface";
import { toast } from "../ui/Toast";

/** The settings of an app. What is left empty stays as it is. */
export function Settings({ app, details }: { app: App; details?: AppDetails }) {
  const queries = useQueryClient();
  const [values, setValues] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const fields = settingsOf(details);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await request("PATCH", `/v1/apps/${app.name}`, { body: { env: Object.fromEntries(Object.entries(values).filter(([, v]) => v !== "")) } });
      setValues({});
      toast("The settings are saved.");
      void queries.invalidateQueries({ queryKey: ["app"] });
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  if (fields.length === 0) return <Card flush><Empty title="Nothing to set">This app asks for no settings.</Empty></Card>;
  return (
    <Card title="Settings">
      <form style={{ display: "grid", gap: 16, maxWidth: 560 }} onSubmit={(e) => { e.preventDefault(); void save(); }}>
        {fields.map((f) => (
          <Field key={f.name} label={f.title || f.name} hint={f.description} required={f.required && !f.set}>
            {(props) => (
              <Input
                {...props} type={f.sensitive ? "password" : "text"} autoComplete="off" value={values[f.name] ?? (f.sensitive ? "" : String(f.value ?? ""))}
                placeholder={f.set && f.sensitive ? "Stored; type to replace it" : undefined} onChange={(e) => setValues({ ...values, [f.name]: e.target.value })}
              />
            )}
          </Field>
        ))}
        {error !== null && <Failure error={error} />}
        <div><Button type="submit" look="primary" busy={busy} disabled={Object.keys(values).length === 0}>Save and restart if needed</Button></div>
      </form>
    </Card>
  );
}

function settingsOf(details?: AppDetails): Setting[] {
  const given = details?.settings ?? details?.userConfig ?? details?.env;
  if (Array.isArray(given)) return (given as (Setting | string)[]).map((s) => (typeof s === "string" ? { name: s, set: true, sensitive: true } : s));
  if (given && typeof given === "object") return Object.entries(given).map(([name, s]) => ({ name, ...(typeof s === "object" ? (s as object) : { value: s }) }));
  return [];
}
