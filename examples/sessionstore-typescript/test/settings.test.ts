import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "../src/settings.js";

const directory = mkdtempSync(join(tmpdir(), "settings"));
test.after(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, "file"), "");

const cases: [name: string, text: string, problems: string[]][] = [
  ["nothing set", "", []],
  ["everything set", JSON.stringify({ directory, waitForDisk: false }), []],
  ["a typo", '{"directroy": "/x"}', ["directroy: is not a setting (directory)"]],
  ["a name unlike any setting", '{"colour": 1}', ["colour: is not a setting ()"]],
  ["names that every object has", '{"constructor": 1, "__proto__": 1}', ["constructor: is not a setting ()", "__proto__: is not a setting ()"]],
  [
    "several wrong types at once",
    '{"directory": 5, "waitForDisk": "yes"}',
    ["directory: must be a string, not a number ()", "waitForDisk: must be true or false, not a string ()"],
  ],
  ["null", '{"waitForDisk": null}', ["waitForDisk: must be true or false, not null ()"]],
  ["a list for a string", '{"directory": []}', ["directory: must be a string, not a list ()"]],
  ["a relative path", '{"directory": "x"}', ["directory: must be an absolute path ()"]],
  ["a missing directory", '{"directory": "/none/such"}', ["directory: must be a directory that exists ()"]],
  ["a file", JSON.stringify({ directory: join(directory, "file") }), ["directory: must be a directory ()"]],
  ["not an object", "[]", [": must be an object, not a list ()"]],
  ["not JSON", "{", [": must be one JSON object, but cannot be parsed ()"]],
];

for (const [name, text, want] of cases) {
  test(`settings with ${name}`, () => {
    const got = parse(text).problems.map((p) => `${p.path}: ${p.message} (${p.nearest})`);
    assert.deepEqual(got, want);
  });
}
