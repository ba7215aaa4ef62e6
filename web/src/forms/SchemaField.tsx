import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button } from "../ui/Button";
import { Field, Input, Select, Textarea } from "../ui/Field";
import { Switch } from "../ui/Switch";
import { withField } from "./object";
import { choicesOf, kindOf, resolve, typeOf, type JsonSchema } from "./schema";
import css from "./forms.module.css";

interface Props {
  name: string;
  schema: JsonSchema;
  root: JsonSchema;
  required?: boolean;
  value: unknown;
  path: string;
  errors: Map<string, string>;
  onChange: (value: unknown) => void;
}

/** The control of one property. */
export function SchemaField({ name, schema, root, required, value, path, errors, onChange }: Props) {
  const real = resolve(schema, root);
  const label = real.title ?? name;
  const kind = kindOf(real);
  if (kind === "object") {
    const object = (value ?? {}) as Record<string, unknown>;
    return (
      <fieldset className={css.group}>
        <legend>{label}</legend>
        {Object.entries(real.properties ?? {}).map(([inner, property]) => (
          <SchemaField
            key={inner} name={inner} schema={property} root={root} required={real.required?.includes(inner)} value={object[inner]}
            path={`${path}/${inner}`} errors={errors} onChange={(v) => onChange(withField(object, inner, v))}
          />
        ))}
      </fieldset>
    );
  }
  return (
    <Field label={label} hint={real.description} required={required} error={errors.get(path)}>
      {(props) => <Control {...props} kind={kind} schema={real} root={root} value={value} onChange={onChange} label={label} />}
    </Field>
  );
}

interface ControlProps {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
  "aria-required"?: true;
  kind: ReturnType<typeof kindOf>;
  schema: JsonSchema;
  root: JsonSchema;
  value: unknown;
  label: string;
  onChange: (value: unknown) => void;
}

function Control({ kind, schema, root, value, label, onChange, ...props }: ControlProps) {
  switch (kind) {
    case "boolean":
      return <span className={css.row}><Switch id={props.id} aria-describedby={props["aria-describedby"]} checked={value === true} onChange={onChange} /></span>;
    case "choice": {
      const choices = choicesOf(schema)!;
      return (
        <Select {...props} value={value === undefined ? "" : JSON.stringify(value)} onChange={(e) => onChange(e.target.value === "" ? undefined : JSON.parse(e.target.value))}>
          <option value="">Choose…</option>
          {choices.map((choice) => <option key={JSON.stringify(choice.value)} value={JSON.stringify(choice.value)}>{choice.title}</option>)}
        </Select>
      );
    }
    case "choices": {
      const chosen = Array.isArray(value) ? (value as unknown[]) : [];
      return (
        <div className={css.checks} role="group" aria-label={label} id={props.id}>
          {choicesOf(resolve(schema.items ?? {}, root))!.map((choice) => (
            <label key={String(choice.value)} className={css.check}>
              <input
                type="checkbox"
                checked={chosen.includes(choice.value)}
                onChange={(e) => onChange(e.target.checked ? [...chosen, choice.value] : chosen.filter((other) => other !== choice.value))}
              />
              {choice.title}
            </label>
          ))}
        </div>
      );
    }
    case "number": {
      const step = typeOf(schema) === "integer" ? 1 : "any";
      return (
        <Input
          {...props} type="number" step={step} min={schema.minimum} max={schema.maximum} value={typeof value === "number" ? value : ""}
          onChange={(e) => onChange(e.target.value === "" ? undefined : Number(e.target.value))}
        />
      );
    }
    case "list": return <ListControl {...props} numeric={typeOf(schema.items ?? {}) !== "string"} value={Array.isArray(value) ? value : []} label={label} onChange={onChange} />;
    case "text": return <TextControl {...props} schema={schema} value={value} onChange={onChange} />;
    default: return <JsonControl {...props} value={value} onChange={onChange} />;
  }
}

const formats: Record<string, string> = { email: "email", uri: "url", date: "date", time: "time", "date-time": "datetime-local", password: "password" };

function TextControl({ schema, value, onChange, ...props }: Omit<ControlProps, "kind" | "root" | "label">) {
  const text = typeof value === "string" ? value : "";
  const set = (to: string) => onChange(to === "" ? undefined : to);
  const long = /(content|text|body|query|prompt|description|markdown|code|message)$/i.test(schema.title ?? props.id) || (schema.maxLength ?? 0) > 200 || text.includes("\n");
  const type = formats[schema.format ?? ""] ?? "text";
  if (type === "datetime-local") {
    const local = text && !Number.isNaN(Date.parse(text)) ? text.slice(0, 16) : "";
    return <Input {...props} type={type} value={local} onChange={(e) => set(e.target.value && new Date(e.target.value).toISOString())} />;
  }
  if (type === "text" && long) return <Textarea {...props} rows={4} value={text} onChange={(e) => set(e.target.value)} />;
  return <Input {...props} type={type} value={text} placeholder={typeof schema.examples?.[0] === "string" ? schema.examples[0] : undefined} onChange={(e) => set(e.target.value)} />;
}

function ListControl({ value, numeric, label, onChange, ...props }: { id: string; value: unknown[]; numeric: boolean; label: string; onChange: (value: unknown) => void }) {
  const set = (all: unknown[]) => onChange(all.length === 0 ? undefined : all);
  return (
    <div className={css.list} role="group" aria-label={label} id={props.id}>
      {value.map((item, i) => (
        <div key={i} className={css.row}>
          <Input
            aria-label={`${label}, ${i + 1}`} type={numeric ? "number" : "text"} step="any" value={String(item ?? "")}
            onChange={(e) => set(value.map((other, j) => (j === i ? (numeric ? Number(e.target.value) : e.target.value) : other)))}
          />
          <Button look="quiet" label={`Remove ${i + 1}`} onClick={() => set(value.filter((_, j) => j !== i))}><Trash2 aria-hidden="true" /></Button>
        </div>
      ))}
      <div><Button small onClick={() => set([...value, numeric ? 0 : ""])}><Plus aria-hidden="true" />Add</Button></div>
    </div>
  );
}

function JsonControl({ value, onChange, ...props }: { id: string; value: unknown; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [bad, setBad] = useState(false);
  return (
    <>
      <Textarea
        {...props} mono rows={4} spellCheck={false} value={text} placeholder="JSON" aria-invalid={bad || undefined}
        onChange={(e) => {
          setText(e.target.value);
          try {
            onChange(e.target.value.trim() === "" ? undefined : JSON.parse(e.target.value));
            setBad(false);
          } catch {
            setBad(true);
          }
        }}
      />
      {bad && <span role="status" className="visually-hidden">This is not JSON yet.</span>}
    </>
  );
}
