import { useState, type ReactNode } from "react";
import { Digits, isNumber, isWritable, numberOf, parseJson, toJson } from "../api/digits";
import { Button } from "../ui/Button";
import { Field, Input, Select, Textarea } from "../ui/Field";
import { Switch } from "../ui/Switch";
import { ListFields, MapFields } from "./Many";
import { withField } from "./object";
import {
  choicesOf,
  fits,
  initial,
  isTooDeep,
  kindOf,
  resolve,
  typeOf,
  variantsOf,
  type JsonSchema,
  type Kind,
} from "./schema";
import { instantOf, localOf, zone } from "./time";
import css from "./forms.module.css";

export interface FieldProps {
  name: string;
  schema: JsonSchema;
  root: JsonSchema;
  required?: boolean;
  value: unknown;
  path: string;
  errors: Map<string, string>;
  onChange: (value: unknown) => void;
}

/** Shows the field for one property. */
export function SchemaField(props: FieldProps) {
  const { name, root, required, value, path, errors, onChange } = props;
  const schema = resolve(props.schema, root);
  const label = schema.title ?? name;
  const kind = isTooDeep(path) ? "json" : kindOf(schema);
  const inside = { ...props, schema };
  switch (kind) {
    case "object":
      return (
        <Group label={label} error={errors.get(path)} about={schema.description}>
          <Properties {...inside} />
        </Group>
      );
    case "list":
      return (
        <Group label={label} error={errors.get(path)} about={schema.description}>
          <ListFields {...inside} label={label} />
        </Group>
      );
    case "map":
      return (
        <Group label={label} error={errors.get(path)} about={schema.description}>
          <MapFields {...inside} label={label} />
        </Group>
      );
    case "variants":
      return (
        <Group label={label} error={errors.get(path)} about={schema.description}>
          <Variants {...inside} label={label} />
        </Group>
      );
  }
  return (
    <Field label={label} hint={hintOf(schema)} required={required} error={errors.get(path)}>
      {(field) => (
        <Control {...field} kind={kind} schema={schema} root={root} value={value} onChange={onChange} label={label} />
      )}
    </Field>
  );
}

const Group = ({
  label,
  about,
  error,
  children,
}: {
  label: string;
  about?: string;
  error?: string;
  children: ReactNode;
}) => (
  <fieldset className={css.group}>
    <legend>{label}</legend>
    {about && <p className={css.about}>{about}</p>}
    {children}
    {error && (
      <p className={css.error} role="alert">
        {error}
      </p>
    )}
  </fieldset>
);

/** Shows the fields of an object. */
export function Properties({ schema, root, value, path, errors, onChange }: FieldProps) {
  const object = (value !== null && typeof value === "object" ? value : {}) as Record<string, unknown>;
  return Object.entries(schema.properties ?? {}).map(([inner, property]) => (
    <SchemaField
      key={inner}
      name={inner}
      schema={property}
      root={root}
      required={schema.required?.includes(inner)}
      value={object[inner]}
      path={`${path}/${inner}`}
      errors={errors}
      onChange={(v) => onChange(withField(object, inner, v))}
    />
  ));
}

const words: Record<string, string> = {
  string: "Text",
  number: "Number",
  integer: "Whole number",
  boolean: "Yes or no",
  object: "Fields",
  array: "List",
};
const nameOf = (schema: JsonSchema, i: number) => {
  const discriminator =
    Object.values(schema.properties ?? {}).find((property) => property.const !== undefined)?.const ?? schema.const;
  return (
    schema.title ??
    (discriminator === undefined ? (words[typeOf(schema) ?? ""] ?? `Variant ${i + 1}`) : String(discriminator))
  );
};

/** Shows a choice between the possible schemas of a value, and the fields for the chosen one. */
function Variants({ schema, root, label, value, path, errors, onChange, required }: FieldProps & { label: string }) {
  const variants = variantsOf(schema, root) ?? [];
  const fitting = value === undefined ? -1 : variants.findIndex((variant) => fits(variant, value, root));
  const [chosen, setChosen] = useState(fitting);
  const variant = variants[chosen];
  return (
    <>
      <Select
        aria-label={`Type of ${label}`}
        aria-required={required || undefined}
        value={chosen}
        onChange={(e) => {
          const to = Number(e.target.value);
          setChosen(to);
          onChange(to < 0 ? undefined : initial(variants[to]!, root));
        }}
      >
        <option value={-1}>Choose…</option>
        {variants.map((option, i) => (
          <option key={i} value={i}>
            {nameOf(option, i)}
          </option>
        ))}
      </Select>
      {variant &&
        (kindOf(variant) === "object" ? (
          <Properties
            key={chosen}
            name={label}
            schema={variant}
            root={root}
            value={value}
            path={path}
            errors={errors}
            onChange={onChange}
          />
        ) : (
          <SchemaField
            key={chosen}
            name={nameOf(variant, chosen)}
            schema={variant}
            root={root}
            value={value}
            path={path}
            errors={errors}
            onChange={onChange}
          />
        ))}
    </>
  );
}

function hintOf(schema: JsonSchema): string | undefined {
  const parts = [schema.description, schema.format === "date-time" && `In your time zone, ${zone()}.`];
  if (typeOf(schema) === "number" || typeOf(schema) === "integer") {
    if (schema.minimum !== undefined && schema.maximum !== undefined)
      parts.push(`From ${schema.minimum} to ${schema.maximum}.`);
    else if (schema.minimum !== undefined) parts.push(`${schema.minimum} or more.`);
    else if (schema.maximum !== undefined) parts.push(`${schema.maximum} or less.`);
  }
  return parts.filter(Boolean).join(" ") || undefined;
}

interface ControlProps {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
  "aria-required"?: true;
  kind: Kind;
  schema: JsonSchema;
  root: JsonSchema;
  value: unknown;
  label: string;
  onChange: (value: unknown) => void;
}

function Control({ kind, schema, root, value, label, onChange, ...props }: ControlProps) {
  switch (kind) {
    case "boolean":
      return (
        <span className={css.row}>
          <Switch
            id={props.id}
            aria-describedby={props["aria-describedby"]}
            checked={value === true}
            onChange={onChange}
          />
        </span>
      );
    case "choice":
      return (
        <Select
          {...props}
          value={value === undefined ? "" : toJson(value)}
          onChange={(e) => onChange(e.target.value === "" ? undefined : parseJson(e.target.value))}
        >
          <option value="">Choose…</option>
          {choicesOf(schema)!.map((choice) => (
            <option key={toJson(choice.value)} value={toJson(choice.value)}>
              {choice.title}
            </option>
          ))}
        </Select>
      );
    case "choices": {
      const chosen = Array.isArray(value) ? (value as unknown[]) : [];
      return (
        <div className={css.checks} role="group" aria-label={label} id={props.id}>
          {choicesOf(resolve(schema.items ?? {}, root))!.map((choice) => (
            <label key={toJson(choice.value)} className={css.check}>
              <input
                type="checkbox"
                checked={chosen.some((one) => toJson(one) === toJson(choice.value))}
                onChange={(e) => {
                  const others = chosen.filter((one) => toJson(one) !== toJson(choice.value));
                  onChange(e.target.checked ? [...others, choice.value] : others);
                }}
              />
              {choice.title}
            </label>
          ))}
        </div>
      );
    }
    case "number":
      return <NumberControl {...props} whole={typeOf(schema) === "integer"} value={value} onChange={onChange} />;
    case "file":
      return <FileControl {...props} label={label} value={value} onChange={onChange} />;
    case "text":
      return <TextControl {...props} schema={schema} value={value} onChange={onChange} />;
    default:
      return <JsonControl {...props} value={value} onChange={onChange} />;
  }
}

/** Parses what was typed into a number field. It keeps text that is not a number, so that it can be corrected. */
function typedNumber(text: string): number | Digits | undefined {
  const number = text
    .trim()
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.");
  if (number === "") return undefined;
  return isWritable(new Digits(number)) ? numberOf(number) : new Digits(number);
}

/** Shows a number exactly as it was typed. The browser's own number field would round it. */
function NumberControl({
  value,
  whole,
  onChange,
  ...props
}: {
  id: string;
  value: unknown;
  whole: boolean;
  onChange: (value: unknown) => void;
}) {
  const [text, setText] = useState(isNumber(value) ? String(value) : "");
  const typed = typedNumber(text);
  const shown = String(typed ?? "") === String(value ?? "") ? text : isNumber(value) ? String(value) : "";
  return (
    <Input
      {...props}
      type="text"
      inputMode={whole ? "numeric" : "decimal"}
      autoComplete="off"
      value={shown}
      onChange={(e) => {
        setText(e.target.value);
        onChange(typedNumber(e.target.value));
      }}
    />
  );
}

function FileControl({
  value,
  label,
  onChange,
  ...props
}: {
  id: string;
  value: unknown;
  label: string;
  onChange: (value: unknown) => void;
}) {
  const read = (file: File | undefined) => {
    if (!file) return onChange(undefined);
    const reader = new FileReader();
    reader.onload = () => onChange(String(reader.result).replace(/^[^,]*,/, ""));
    reader.readAsDataURL(file);
  };
  return (
    <span className={css.row}>
      <Input {...props} type="file" onChange={(e) => read(e.target.files?.[0])} />
      {value !== undefined && (
        <Button small label={`Remove ${label}`} onClick={() => onChange(undefined)}>
          ×
        </Button>
      )}
    </span>
  );
}

const formats: Record<string, string> = {
  email: "email",
  uri: "url",
  date: "date",
  time: "time",
  "date-time": "datetime-local",
  password: "password",
};

function TextControl({ schema, value, onChange, ...props }: Omit<ControlProps, "kind" | "root" | "label">) {
  const text = typeof value === "string" ? value : "";
  const set = (to: string) => onChange(to === "" ? undefined : to);
  const long =
    /(content|text|body|query|prompt|description|markdown|code|message)$/i.test(schema.title ?? props.id) ||
    (schema.maxLength ?? 0) > 200 ||
    text.includes("\n");
  const type = formats[schema.format ?? ""] ?? "text";
  if (type === "datetime-local")
    return (
      <Input
        {...props}
        type={type}
        step="any"
        value={localOf(text)}
        onChange={(e) => set(instantOf(e.target.value, text))}
      />
    );
  if (type === "text" && long)
    return <Textarea {...props} rows={4} value={text} onChange={(e) => set(e.target.value)} />;
  return (
    <Input
      {...props}
      type={type}
      value={text}
      placeholder={typeof schema.examples?.[0] === "string" ? schema.examples[0] : undefined}
      onChange={(e) => set(e.target.value)}
    />
  );
}

function JsonControl({
  value,
  onChange,
  ...props
}: {
  id: string;
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const [text, setText] = useState(value === undefined ? "" : toJson(value, 2));
  const [bad, setBad] = useState(false);
  return (
    <>
      <Textarea
        {...props}
        mono
        rows={4}
        spellCheck={false}
        value={text}
        placeholder="JSON"
        aria-invalid={bad || undefined}
        onChange={(e) => {
          setText(e.target.value);
          try {
            onChange(e.target.value.trim() === "" ? undefined : parseJson(e.target.value));
            setBad(false);
          } catch {
            setBad(true);
          }
        }}
      />
      {bad && (
        <span role="status" className="visually-hidden">
          This is not JSON yet.
        </span>
      )}
    </>
  );
}
