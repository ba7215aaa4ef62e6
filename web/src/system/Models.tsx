import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, take } from "../api/client";
import { refresh } from "../api/refresh";
import { useModels } from "../chat/capabilities";
import { Button } from "../ui/Button";
import { Field, Input } from "../ui/Field";
import { Card, Failure } from "../ui/Surface";
import { toast } from "../ui/Toast";
import css from "../ui/controls.module.css";

interface Config {
  default: string;
  fast: string;
}

/** Shows the models for chats and for short tasks. */
export function Models() {
  const queries = useQueryClient();
  const known = useModels();
  const models = useQuery({ queryKey: ["model-config"], queryFn: () => take(api.GET("/v1/models")) });
  const [edited, setEdited] = useState<Partial<Config>>({});
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    try {
      await take(api.PATCH("/v1/models", { body: edited }));
      setEdited({});
      setError(null);
      toast("The models were changed.");
      refresh(queries, ["model-config", "bootstrap", "models"]);
    } catch (problem) {
      setError(problem);
    }
  };
  if (models.isLoadingError)
    return (
      <Card title="Models">
        <Failure error={models.error} />
      </Card>
    );
  const field = (key: keyof Config, label: string, hint: string) => (
    <Field label={label} hint={hint}>
      {(props) => (
        <Input
          {...props}
          mono
          list="known-models"
          placeholder="provider:model"
          value={edited[key] ?? models.data?.[key] ?? ""}
          onChange={(e) => setEdited({ ...edited, [key]: e.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Card title="Models">
      <form
        style={{
          display: "grid",
          gap: 16,
          gridTemplateColumns: "repeat(auto-fit, minmax(min(100%, 260px), 1fr))",
          alignItems: "start",
        }}
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {field("default", "Chats", "Leave empty to use the model from the configuration")}
        {field("fast", "Titles and other short tasks", "Leave empty to use the model from the configuration")}
        <datalist id="known-models">
          {known.map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
        {models.data && (
          <p className={css.hint} style={{ gridColumn: "1 / -1" }}>
            Providers: {models.data.providers.map((p) => `${p.name}${p.usable ? "" : " (no key)"}`).join(", ")}
          </p>
        )}
        {error !== null && <Failure error={error} />}
        {Object.keys(edited).length > 0 && (
          <div>
            <Button type="submit" look="primary">
              Save
            </Button>
          </div>
        )}
      </form>
    </Card>
  );
}
