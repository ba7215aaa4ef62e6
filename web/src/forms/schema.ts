/** The part of JSON Schema that forms are made from. */
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
  enum?: unknown[];
  enumNames?: string[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  allOf?: JsonSchema[];
  additionalProperties?: boolean | JsonSchema;
}

export type Kind = "choice" | "choices" | "boolean" | "number" | "text" | "object" | "list" | "json";

/** A schema without its references, and without the null that an optional field may be. */
export function resolve(schema: JsonSchema, root: JsonSchema, depth = 0): JsonSchema {
  if (depth > 20) return {};
  if (schema.$ref?.startsWith("#/")) {
    let at: unknown = root;
    for (const key of schema.$ref.slice(2).split("/")) at = (at as Record<string, unknown> | undefined)?.[decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")];
    const { $ref: _, ...rest } = schema;
    return resolve({ ...(at as JsonSchema | undefined), ...rest }, root, depth + 1);
  }
  const options = schema.anyOf ?? schema.oneOf;
  if (options) {
    const real = options.map((option) => resolve(option, root, depth + 1)).filter((option) => option.type !== "null");
    if (real.length === 1) {
      const { anyOf: _a, oneOf: _o, ...rest } = schema;
      return { ...real[0], ...rest };
    }
  }
  if (schema.allOf?.length === 1) {
    const { allOf, ...rest } = schema;
    return resolve({ ...allOf[0], ...rest }, root, depth + 1);
  }
  return schema;
}

export function typeOf(schema: JsonSchema): string | undefined {
  if (Array.isArray(schema.type)) {
    const real = schema.type.filter((type) => type !== "null");
    return real.length === 1 ? real[0] : undefined;
  }
  return schema.type ?? (schema.properties ? "object" : undefined);
}

/** The values of a choice with what they are called, when the schema is one. */
export function choicesOf(schema: JsonSchema): { value: unknown; title: string }[] | null {
  if (schema.enum) return schema.enum.map((value, i) => ({ value, title: schema.enumNames?.[i] ?? String(value) }));
  const options = schema.oneOf ?? schema.anyOf;
  if (options?.length && options.every((option) => "const" in option)) return options.map((option) => ({ value: option.const, title: option.title ?? String(option.const) }));
  return null;
}

/** Which control a schema gets. What no control fits is written as JSON. */
export function kindOf(schema: JsonSchema): Kind {
  if (choicesOf(schema)) return "choice";
  switch (typeOf(schema)) {
    case "boolean": return "boolean";
    case "integer":
    case "number": return "number";
    case "string": return "text";
    case "object": return schema.properties && Object.keys(schema.properties).length > 0 ? "object" : "json";
    case "array": {
      const items = schema.items ?? {};
      if (choicesOf(items)) return "choices";
      return ["string", "number", "integer"].includes(typeOf(items) ?? "") ? "list" : "json";
    }
  }
  return "json";
}

/** The value that a form begins with. */
export function initial(schema: JsonSchema, root: JsonSchema = schema): unknown {
  const real = resolve(schema, root);
  if (real.default !== undefined) return real.default;
  if (kindOf(real) === "object") {
    const value: Record<string, unknown> = {};
    for (const [name, property] of Object.entries(real.properties ?? {})) {
      const start = initial(property, root);
      if (start !== undefined && (real.required?.includes(name) || typeof start !== "object" || Object.keys(start as object).length > 0)) value[name] = start;
    }
    return value;
  }
  if (kindOf(real) === "boolean" && real.const === undefined) return undefined;
  return undefined;
}

/** The required fields that a value lacks, by JSON pointer. */
export function missing(schema: JsonSchema, value: unknown, root: JsonSchema = schema, at = ""): Map<string, string> {
  const problems = new Map<string, string>();
  const real = resolve(schema, root);
  if (kindOf(real) !== "object") return problems;
  const object = (value ?? {}) as Record<string, unknown>;
  for (const [name, property] of Object.entries(real.properties ?? {})) {
    const path = `${at}/${name}`;
    const inner = object[name];
    const field = resolve(property, root);
    if (real.required?.includes(name) && (inner === undefined || inner === "") && field.minLength !== 0 && kindOf(field) !== "boolean") problems.set(path, "This is needed.");
    if (inner !== undefined) for (const [key, text] of missing(property, inner, root, path)) problems.set(key, text);
  }
  return problems;
}
