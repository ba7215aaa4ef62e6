import { useState } from "react";
import { Field, Textarea } from "../ui/Field";
import { withField } from "./object";
import { SchemaField } from "./SchemaField";
import { resolve, type JsonSchema } from "./schema";
import css from "./forms.module.css";

interface Props {
  schema: JsonSchema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  /** Problems by JSON pointer. */
  errors?: Map<string, string>;
  /** Whether the whole value may be written as JSON instead. */
  json?: boolean;
}

/** A form made of the schema of an object. */
export function SchemaForm({ schema, value, onChange, errors = new Map(), json }: Props) {
  const [asText, setAsText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const root = resolve(schema, schema);
  const names = Object.keys(root.properties ?? {});
  const write = (text: string) => {
    setAsText(text);
    try {
      const parsed: unknown = JSON.parse(text || "{}");
      if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) throw new Error("want an object");
      onChange(parsed as Record<string, unknown>);
      setProblem("");
    } catch (error) {
      setProblem(`This is not a JSON object: ${(error as Error).message}`);
    }
  };
  return (
    <div className={css.fields}>
      {json && (
        <div className={css.modes} role="group" aria-label="How to write the arguments">
          <button type="button" className={css.mode} aria-pressed={asText === null} onClick={() => { setAsText(null); setProblem(""); }}>Form</button>
          <button type="button" className={css.mode} aria-pressed={asText !== null} onClick={() => setAsText(JSON.stringify(value, null, 2))}>JSON</button>
        </div>
      )}
      {asText !== null ? (
        <Field label="Arguments" error={problem}>
          {(props) => <Textarea {...props} mono rows={Math.min(20, Math.max(6, asText.split("\n").length + 1))} spellCheck={false} value={asText} onChange={(e) => write(e.target.value)} />}
        </Field>
      ) : (
        names.map((name) => (
          <SchemaField
            key={name}
            name={name}
            schema={root.properties![name]!}
            root={schema}
            required={root.required?.includes(name)}
            value={value[name]}
            path={`/${name}`}
            errors={errors}
            onChange={(inner) => onChange(withField(value, name, inner))}
          />
        ))
      )}
    </div>
  );
}
