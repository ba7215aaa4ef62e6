import { Digits, isNumber, isWritable, toJson } from "../api/digits";

/** The part of JSON Schema that forms support. */
export interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  definitions?: Record<string, JsonSchema>;
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  prefixItems?: JsonSchema[];
  enum?: unknown[];
  enumNames?: string[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  format?: string;
  contentEncoding?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  allOf?: JsonSchema[];
  additionalProperties?: boolean | JsonSchema;
}

export type Kind =
  "choice" | "choices" | "boolean" | "number" | "text" | "file" | "object" | "list" | "map" | "variants" | "json";

const deepest = 8; // a limit for recursive schemas

/** Resolves references and allOf, and removes null from alternatives. */
export function resolve(schema: JsonSchema, root: JsonSchema, depth = 0): JsonSchema {
  if (depth > 20) return {};
  if (schema.$ref?.startsWith("#")) {
    let at: unknown = root;
    for (const key of schema.$ref.slice(2).split("/").filter(Boolean))
      at = (at as Record<string, unknown> | undefined)?.[
        decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")
      ];
    const { $ref: _, ...rest } = schema;
    return resolve({ ...(at as JsonSchema | undefined), ...rest }, root, depth + 1);
  }
  const options = variantsOf(schema, root, depth);
  if (options?.length === 1) {
    const { anyOf: _a, oneOf: _o, ...rest } = schema;
    return { ...options[0], ...rest };
  }
  if (schema.allOf?.length) {
    const { allOf, ...rest } = schema;
    return [...allOf.map((part) => resolve(part, root, depth + 1)), rest].reduce(merged);
  }
  return schema;
}

/** Merges two schemas if both apply. */
const merged = (a: JsonSchema, b: JsonSchema): JsonSchema => ({
  ...a,
  ...b,
  ...(a.properties && b.properties && { properties: { ...a.properties, ...b.properties } }),
  ...(a.required && b.required && { required: [...a.required, ...b.required] }),
});

/** Returns the alternatives of a schema except null. */
export function variantsOf(schema: JsonSchema, root: JsonSchema, depth = 0): JsonSchema[] | undefined {
  return (schema.anyOf ?? schema.oneOf)
    ?.map((option) => resolve(option, root, depth + 1))
    .filter((option) => option.type !== "null");
}

export function typeOf(schema: JsonSchema): string | undefined {
  if (Array.isArray(schema.type)) {
    const real = schema.type.filter((type) => type !== "null");
    return real.length === 1 ? real[0] : undefined;
  }
  return schema.type ?? (schema.properties ? "object" : undefined);
}

/** Returns the values and titles of a choice, or null for other schemas. */
export function choicesOf(schema: JsonSchema): { value: unknown; title: string }[] | null {
  if (schema.const !== undefined) return [{ value: schema.const, title: String(schema.const) }];
  if (schema.enum) return schema.enum.map((value, i) => ({ value, title: schema.enumNames?.[i] ?? String(value) }));
  const options = schema.oneOf ?? schema.anyOf;
  if (options?.length && options.every((option) => "const" in option))
    return options.map((option) => ({ value: option.const, title: option.title ?? String(option.const) }));
  return null;
}

/** Returns the control for a schema. Anything without a control is edited as JSON. */
export function kindOf(schema: JsonSchema): Kind {
  if (choicesOf(schema)) return "choice";
  if ((schema.anyOf ?? schema.oneOf)?.length && !schema.properties) return "variants";
  switch (typeOf(schema)) {
    case "boolean":
      return "boolean";
    case "integer":
    case "number":
      return "number";
    case "string":
      return schema.contentEncoding === "base64" || schema.format === "byte" ? "file" : "text";
    case "object": {
      if (schema.properties && Object.keys(schema.properties).length > 0) return "object";
      return typeof schema.additionalProperties === "object" ? "map" : "json";
    }
    case "array": {
      if (!schema.items || typeof schema.items !== "object" || schema.prefixItems) return "json";
      return choicesOf(schema.items) ? "choices" : "list";
    }
  }
  return "json";
}

/** Reports whether a value fits a variant. */
export function fits(schema: JsonSchema, value: unknown, root: JsonSchema): boolean {
  const choices = choicesOf(schema);
  if (choices) return choices.some((choice) => toJson(choice.value) === toJson(value));
  switch (typeOf(schema)) {
    case "boolean":
      return typeof value === "boolean";
    case "integer":
    case "number":
      return isNumber(value);
    case "string":
      return typeof value === "string";
    case "array":
      return Array.isArray(value);
    case "object": {
      if (value === null || typeof value !== "object" || Array.isArray(value) || value instanceof Digits) return false;
      const object = value as Record<string, unknown>;
      return (
        Object.entries(schema.properties ?? {}).every(
          ([name, property]) => object[name] === undefined || fits(resolve(property, root), object[name], root),
        ) &&
        (schema.required ?? []).every(
          (name) => resolve(schema.properties?.[name] ?? {}, root).const === undefined || object[name] !== undefined,
        )
      );
    }
  }
  return true;
}

/** Returns the initial value of a form. */
export function initial(schema: JsonSchema, root: JsonSchema = schema, depth = 0): unknown {
  const real = resolve(schema, root);
  if (real.default !== undefined) return real.default;
  if (real.const !== undefined) return real.const;
  if (kindOf(real) !== "object" || depth > deepest) return undefined;
  const value: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(real.properties ?? {})) {
    const isRequired = real.required?.includes(name);
    const start =
      isRequired || resolve(property, root).const === undefined ? initial(property, root, depth + 1) : undefined;
    if (
      start !== undefined &&
      (isRequired || typeof start !== "object" || start === null || Object.keys(start).length > 0)
    )
      value[name] = start;
  }
  return value;
}

/** Returns the initial value of a new list item or map entry. */
export const blank = (schema: JsonSchema, root: JsonSchema): unknown =>
  initial(schema, root) ??
  { object: {}, map: {}, list: [], choices: [], boolean: false, text: "" }[kindOf(resolve(schema, root)) as string] ??
  null;

/** Reports whether a field is nested so deeply that it is edited as JSON. */
export const isTooDeep = (path: string) => path.split("/").length > deepest;

/** Returns the problems in a value that a form can detect, by JSON pointer and in the order of the fields. */
export function problemsOf(
  schema: JsonSchema,
  value: unknown,
  root: JsonSchema = schema,
  at = "",
): Map<string, string> {
  const real = resolve(schema, root);
  const inner = (property: JsonSchema, key: string | number, item: unknown) => [
    ...problemsOf(property, item, root, `${at}/${key}`),
  ];
  const simple = problemOf(real, value);
  if (simple) return new Map([[at, simple]]);
  switch (kindOf(real)) {
    case "object": {
      const object = (value ?? {}) as Record<string, unknown>;
      return new Map(
        Object.entries(real.properties ?? {}).flatMap(([name, property]) => {
          const item = object[name];
          if (item !== undefined && item !== "") return inner(property, name, item);
          const field = resolve(property, root);
          const lacks =
            real.required?.includes(name) &&
            (item === undefined || field.minLength !== 0) &&
            kindOf(field) !== "boolean";
          return lacks ? [[`${at}/${name}`, "This field is required."] as [string, string]] : [];
        }),
      );
    }
    case "list":
      return new Map((Array.isArray(value) ? value : []).flatMap((item, i) => inner(real.items!, i, item)));
    case "map":
      return new Map(
        Object.entries((value ?? {}) as object).flatMap(([name, item]) =>
          inner(real.additionalProperties as JsonSchema, name, item),
        ),
      );
    case "variants": {
      const variant = variantsOf(real, root)?.find((option) => fits(option, value, root));
      return variant ? problemsOf(variant, value, root, at) : new Map();
    }
  }
  return new Map();
}

/** Returns the problem with a single value, or "" if there is none. */
function problemOf(schema: JsonSchema, value: unknown): string {
  if (isNumber(value)) {
    const number = Number(value);
    if (!isWritable(value)) return "Enter a number.";
    if (typeOf(schema) === "integer" && !Number.isInteger(number)) return "Enter a whole number.";
    if (schema.minimum !== undefined && number < Number(schema.minimum)) return `Enter ${schema.minimum} or more.`;
    if (schema.maximum !== undefined && number > Number(schema.maximum)) return `Enter ${schema.maximum} or less.`;
  } else if (typeof value === "string") {
    const length = [...value].length;
    if (schema.minLength !== undefined && length < schema.minLength)
      return `Enter at least ${schema.minLength} characters.`;
    if (schema.maxLength !== undefined && length > schema.maxLength)
      return `Enter at most ${schema.maxLength} characters.`;
    if (schema.pattern && !matches(schema.pattern, value)) return `This must match ${schema.pattern}.`;
  } else if (Array.isArray(value)) {
    if (schema.minItems !== undefined && value.length < schema.minItems)
      return `Choose or add at least ${schema.minItems}.`;
    if (schema.maxItems !== undefined && value.length > schema.maxItems)
      return `Choose or add at most ${schema.maxItems}.`;
  }
  return "";
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // not a valid JavaScript pattern, so only the app checks it
  }
}

/** Returns the name of a field in its form, which consists of the titles along its JSON pointer. */
export function nameAt(pointer: string, root: JsonSchema): string {
  const names: string[] = [];
  let schema = resolve(root, root);
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const inner = innerOf(schema, key, root);
    if (/^\d+$/.test(key) && schema.items) names.push(String(Number(key) + 1));
    else names.push(inner.title ?? key);
    schema = inner;
  }
  return names.join(", ");
}

/** Returns the schema of a field inside an object, a list or a map, or inside the variant that has this field. */
function innerOf(schema: JsonSchema, key: string, root: JsonSchema): JsonSchema {
  const all = [schema, ...(variantsOf(schema, root) ?? [])];
  const property = all.find((one) => one.properties?.[key])?.properties?.[key];
  const others = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
  return resolve(property ?? schema.items ?? others ?? {}, root);
}
