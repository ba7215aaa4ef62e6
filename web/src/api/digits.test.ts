import { expect, test } from "vitest";
import { Digits, numberOf, parseJson, toJson } from "./digits";

test.each(["9007199254740993", "1.0", "2.50", "1e400", "0.1000000000000000055", "-0.0"])(
  "JSON keeps the digits of %s",
  (number) => {
    const text = `{"a":${number},"list":[${number}]}`;
    expect(toJson(parseJson(text))).toBe(text);
    expect(String((parseJson(text) as { a: unknown }).a)).toBe(number);
  },
);

test.each(["0", "-1", "0.5", "1e-7", "123456.25"])("%s is an ordinary number", (number) => {
  expect(parseJson(`[${number}]`)).toEqual([Number(number)]);
});

test("numbers inside strings do not change", () => {
  const text = `{"a":"1.0 and 9007199254740993","b":"\\"2.0\\""}`;
  expect(parseJson(text)).toEqual({ a: "1.0 and 9007199254740993", b: '"2.0"' });
});

test("a typed number keeps its trailing zeros", () => {
  expect(numberOf("1.0")).toEqual(new Digits("1.0"));
  expect(numberOf("10")).toBe(10);
});
