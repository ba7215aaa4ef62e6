import { useDeferredValue, useMemo, useState } from "react";
import { parseJson, toJson } from "../api/digits";
import type { ToolResult } from "../api/client";
import { Code } from "../ui/Code";
import { Search } from "../ui/Field";
import { count, plural } from "../ui/format";
import { Picture } from "../ui/Picture";
import css from "./tools.module.css";

interface Content {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  resource?: { uri: string; mimeType?: string; text?: string };
}

type Result = Pick<ToolResult, "content" | "structuredContent">;

const longResult = 1_500; // characters

/** Shows the result of a tool. A long result can be searched. */
export function ResultView({ result }: { result: Result }) {
  const [query, setQuery] = useState("");
  const text = useMemo(() => textOf(result), [result]);
  const words = useDeferredValue(query.trim());
  if (text.length < longResult) return <Parts result={result} />;
  const lines = text.split("\n");
  const found = linesWith(lines, words);
  return (
    <div className={css.result}>
      <Search label="Search this result" value={query} onChange={(e) => setQuery(e.target.value)} />
      {words === "" ? (
        <Parts result={result} />
      ) : (
        <>
          <p className={css.about} role="status">
            {found.length === 0 ? "No matches" : `${count(found.length)} of ${plural(lines.length, "line")}`}
          </p>
          {found.length > 0 && <Code label="Matching lines" text={found.slice(0, 500).join("\n")} wrap />}
        </>
      )}
    </div>
  );
}

/** Returns the lines that contain all of these words, each with its line number. */
export function linesWith(lines: string[], words: string): string[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return lines.flatMap((line, i) => {
    const lower = line.toLowerCase();
    return wanted.every((word) => lower.includes(word)) ? [`${i + 1}: ${line.trim()}`] : [];
  });
}

/** Returns the text of a result as it is displayed. */
function textOf({ content = [], structuredContent: structured }: Result): string {
  const parts = (content as unknown as Content[]).map((part) => pretty(part.text ?? part.resource?.text ?? ""));
  if (structured === undefined) return parts.join("\n");
  const shown = toJson(structured, 2);
  return [shown, ...parts.filter((part) => part !== shown)].join("\n");
}

function Parts({ result }: { result: Result }) {
  const content = (result.content ?? []) as unknown as Content[];
  const structured = result.structuredContent;
  const repeats = structured !== undefined && content.length === 1 && content[0]!.type === "text";
  return (
    <div className={css.result}>
      {structured !== undefined && <Code label="Structured result" text={toJson(structured, 2)} wrap />}
      {!(repeats && sameJson(content[0]!.text, structured)) && content.map((part, i) => <Part key={i} part={part} />)}
      {content.length === 0 && structured === undefined && <p className={css.about}>The result is empty.</p>}
    </div>
  );
}

function Part({ part }: { part: Content }) {
  switch (part.type) {
    case "text":
      return <Code label="Text" text={pretty(part.text ?? "")} wrap />;
    case "image":
      return (
        <Picture
          className={css.picture}
          src={`data:${part.mimeType ?? "image/png"};base64,${part.data ?? ""}`}
          name="Picture in the result"
        />
      );
    case "resource_link":
      return (
        <p>
          Resource <code>{part.uri}</code>
          {part.name && ` (${part.name})`}
        </p>
      );
    case "resource":
      return part.resource?.text !== undefined ? (
        <Code label={part.resource.uri} text={part.resource.text} wrap />
      ) : (
        <p>
          Resource <code>{part.resource?.uri}</code>
        </p>
      );
    default:
      return <Code label={part.type} text={toJson(part, 2)} wrap />;
  }
}

export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return toJson(parseJson(text), 2);
  } catch {
    return text;
  }
}

function sameJson(text: string | undefined, value: unknown): boolean {
  try {
    return toJson(parseJson(text ?? "")) === toJson(value);
  } catch {
    return false;
  }
}
