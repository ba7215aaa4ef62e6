import { describe, expect, test } from "vitest";
import { Digits, parseJson } from "../api/digits";
import { blank, fits, initial, kindOf, nameAt, problemsOf, resolve, variantsOf, type JsonSchema } from "./schema";

const order: JsonSchema = {
  type: "object",
  required: ["lines", "payment"],
  properties: {
    lines: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["name"],
        properties: { name: { type: "string" }, count: { type: "integer", minimum: 1, default: 1 } },
      },
    },
    payment: { oneOf: [{ $ref: "#/$defs/card" }, { $ref: "#/$defs/invoice" }] },
    labels: { type: "object", additionalProperties: { type: "string", maxLength: 3 } },
  },
  $defs: {
    card: { type: "object", required: ["kind"], properties: { kind: { const: "card" }, number: { type: "string" } } },
    invoice: {
      type: "object",
      required: ["kind", "email"],
      properties: { kind: { const: "invoice" }, email: { type: "string" } },
    },
  },
};

describe("kinds of controls", () => {
  test.each<[string, JsonSchema, string]>([
    ["a list of objects", { type: "array", items: { type: "object", properties: { a: { type: "string" } } } }, "list"],
    ["a list of choices", { type: "array", items: { enum: ["a", "b"] } }, "choices"],
    ["a tuple", { type: "array", prefixItems: [{ type: "string" }] }, "json"],
    ["a map", { type: "object", additionalProperties: { type: "number" } }, "map"],
    ["any object", { type: "object" }, "json"],
    ["a file", { type: "string", contentEncoding: "base64" }, "file"],
    ["variants", { anyOf: [{ type: "string" }, { type: "number" }] }, "variants"],
    ["titled choices", { oneOf: [{ const: "a", title: "A" }, { const: "b" }] }, "choice"],
    ["an optional number", { type: ["number", "null"] }, "number"],
  ])("%s", (_, schema, kind) => expect(kindOf(schema)).toBe(kind));
});

describe("references", () => {
  test("an anyOf with null resolves to the other schema", () => {
    expect(kindOf(resolve({ anyOf: [{ type: "string" }, { type: "null" }] }, {}))).toBe("text");
  });

  test("allOf merges properties and required lists", () => {
    const schema: JsonSchema = {
      allOf: [
        { properties: { a: {} }, required: ["a"] },
        { properties: { b: {} }, required: ["b"] },
      ],
    };
    expect(resolve(schema, schema)).toMatchObject({ properties: { a: {}, b: {} }, required: ["a", "b"] });
  });

  test("a recursive schema terminates", () => {
    const tree: JsonSchema = { type: "object", properties: { next: { $ref: "#" } } };
    expect(() => initial(tree)).not.toThrow();
  });
});

describe("values", () => {
  test("a form starts with the defaults", () => {
    expect(blank(order.properties!.lines!.items!, order)).toEqual({ count: 1 });
  });

  test("a value selects its variant", () => {
    const variants = variantsOf(order.properties!.payment!, order)!;
    const value = { kind: "invoice", email: "a@b.c" };
    expect(variants.map((variant) => fits(variant, value, order))).toEqual([false, true]);
  });
});

describe("problems", () => {
  test("are listed by JSON pointer, in the order of the fields", () => {
    const value = {
      lines: [{ name: "" }, { name: "x", count: 0 }],
      payment: { kind: "invoice" },
      labels: { a: "long" },
    };
    expect([...problemsOf(order, value)]).toEqual([
      ["/lines/0/name", "This field is required."],
      ["/lines/1/count", "Enter 1 or more."],
      ["/payment/email", "This field is required."],
      ["/labels/a", "Enter at most 3 characters."],
    ]);
  });

  test("a missing required list is a problem", () => {
    expect(problemsOf(order, { payment: { kind: "card" } }).get("/lines")).toBe("This field is required.");
  });

  test("numbers are compared with all their digits kept", () => {
    const schema: JsonSchema = { type: "object", properties: { id: { type: "integer" }, rate: { type: "number" } } };
    const value = parseJson('{"id":9007199254740993,"rate":1.0}');
    expect(problemsOf(schema, value).size).toBe(0);
    expect(problemsOf(schema, { rate: new Digits("1.") }).get("/rate")).toBe("Enter a number.");
  });
});

describe("names of fields", () => {
  test.each([
    ["/lines/0/name", "lines, 1, name"],
    ["/payment/email", "payment, email"],
    ["/labels/a", "labels, a"],
    ["/nothing", "nothing"],
  ])("%s", (pointer, name) => expect(nameAt(pointer, order)).toBe(name));

  test("are titles if the schema has titles", () => {
    const schema: JsonSchema = { properties: { a: { title: "Address", properties: { zip: { title: "Postcode" } } } } };
    expect(nameAt("/a/zip", schema)).toBe("Address, Postcode");
  });
});
