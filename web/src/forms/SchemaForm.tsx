import { useEffect, useRef, useState } from "react";
import { parseJson, toJson } from "../api/digits";
import { Field, Textarea } from "../ui/Field";
import { plural } from "../ui/format";
import { Properties, SchemaField } from "./SchemaField";
import { kindOf, nameAt, resolve, type JsonSchema } from "./schema";
import css from "./forms.module.css";

interface Props {
  schema: JsonSchema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  /** Problems by JSON pointer. */
  errors?: Map<string, string>;
  /** Whether the value can also be edited as JSON. */
  json?: boolean;
}

const none = new Map<string, string>();

/** Shows a form generated from the schema of an object. */
export function SchemaForm({ schema, value, onChange, errors = none, json }: Props) {
  const [asText, setAsText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const root = resolve(schema, schema);
  const fields = useRef<HTMLDivElement>(null);
  // Move the focus to the first field with a problem.
  useEffect(() => {
    if (errors.size > 0)
      fields.current
        ?.querySelector<HTMLElement>(
          "[aria-invalid=true], fieldset:has(> [role=alert]) :is(input, select, textarea, button)",
        )
        ?.focus();
  }, [errors]);
  const inside = {
    name: "Arguments",
    schema: root,
    root: schema,
    value,
    path: "",
    errors,
    onChange: (to: unknown) => onChange((to ?? {}) as Record<string, unknown>),
  };
  const pointer = [...errors.keys()].find((one) => one !== "");
  const first = pointer === undefined ? "" : nameAt(pointer, schema);
  const write = (text: string) => {
    setAsText(text);
    try {
      const parsed: unknown = parseJson(text || "{}");
      if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed))
        throw new Error("it must be an object");
      onChange(parsed as Record<string, unknown>);
      setProblem("");
    } catch (error) {
      setProblem(`Enter a JSON object: ${(error as Error).message}`);
    }
  };
  return (
    <div className={css.fields} ref={fields}>
      {json && (
        <div className={css.modes} role="group" aria-label="Edit the arguments as">
          <button
            type="button"
            className={css.mode}
            aria-pressed={asText === null}
            onClick={() => {
              setAsText(null);
              setProblem("");
            }}
          >
            Form
          </button>
          <button
            type="button"
            className={css.mode}
            aria-pressed={asText !== null}
            onClick={() => setAsText(toJson(value, 2))}
          >
            JSON
          </button>
        </div>
      )}
      {asText !== null ? (
        <Field label="Arguments" error={problem}>
          {(props) => (
            <Textarea
              {...props}
              mono
              rows={Math.min(20, Math.max(6, asText.split("\n").length + 1))}
              spellCheck={false}
              value={asText}
              onChange={(e) => write(e.target.value)}
            />
          )}
        </Field>
      ) : root.properties ? (
        <Properties {...inside} />
      ) : ["map", "variants"].includes(kindOf(root)) ? (
        <SchemaField {...inside} />
      ) : null}
      {first && (
        <p className={css.error} role="status">
          Check {first}
          {errors.size > 1 && ` and ${plural(errors.size - 1, "more field")}`}.
        </p>
      )}
    </div>
  );
}
