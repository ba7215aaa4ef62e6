// The settings. They are read strictly: every problem is reported at once, with its path.

import { accessSync, constants, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { closest, distance } from "fastest-levenshtein";

/** The settings that an operator writes below `sessionStore:`, in addition to adapter, path and sha256. */
export interface Settings {
  /** Where the sessions are kept; empty for the directory that the server provides. */
  directory: string;
  /** Whether a write returns only once it would survive a power cut. */
  waitForDisk: boolean;
}

/** One problem. The message never repeats a value. */
export interface Problem {
  path: string;
  message: string;
  nearest: string;
}

const names = ["directory", "waitForDisk"];

/** Reads settings. Use them only if there are no problems. */
export function parse(text: string): { settings: Settings; problems: Problem[] } {
  const settings: Settings = { directory: "", waitForDisk: true };
  const problems: Problem[] = [];
  const add = (path: string, message: string, nearest = ""): void => void problems.push({ path, message, nearest });
  for (const [name, value] of members(text, add)) {
    if (name === "directory") {
      if (typeof value === "string") settings.directory = value;
      else add(name, `must be a string, not ${kindOf(value)}`);
    } else if (name === "waitForDisk") {
      if (typeof value === "boolean") settings.waitForDisk = value;
      else add(name, `must be true or false, not ${kindOf(value)}`);
    } else {
      add(name, "is not a setting", nearest(name));
    }
  }
  const complaint = settings.directory === "" ? "" : checkDirectory(settings.directory);
  if (complaint !== "") add("directory", complaint);
  return { settings, problems };
}

function members(text: string, add: (path: string, message: string) => void): [string, unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(text === "" ? "{}" : text);
  } catch {
    add("", "must be one JSON object, but cannot be parsed");
    return [];
  }
  if (kindOf(value) !== "an object") {
    add("", `must be an object, not ${kindOf(value)}`);
    return [];
  }
  return Object.entries(value as object);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return { boolean: "true or false", number: "a number", string: "a string" }[typeof value as string] ?? "an object";
}

/** Returns the setting that a misspelled name probably means; empty if none is close. */
function nearest(name: string): string {
  const found = closest(name, names);
  return distance(name.toLowerCase(), found.toLowerCase()) <= Math.max(2, name.length / 3) ? found : "";
}

function checkDirectory(path: string): string {
  if (!isAbsolute(path)) return "must be an absolute path";
  try {
    if (!statSync(path).isDirectory()) return "must be a directory";
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (problem) {
    const { code } = problem as NodeJS.ErrnoException;
    return code === "ENOENT" ? "must be a directory that exists" : `must be a writable directory (${code})`;
  }
  return "";
}
