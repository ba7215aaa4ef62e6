import { parseJson, toJson } from "../api/digits";
import type { ToolResult } from "../api/client";
import { Code } from "../ui/Code";
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

/** What a tool answered. */
export function ResultView({ result }: { result: Pick<ToolResult, "content" | "structuredContent"> }) {
  const content = (result.content ?? []) as unknown as Content[];
  const structured = result.structuredContent;
  const repeats = structured !== undefined && content.length === 1 && content[0]!.type === "text";
  return (
    <div className={css.result}>
      {structured !== undefined && <Code label="Structured result" text={toJson(structured, 2)} wrap />}
      {!(repeats && sameJson(content[0]!.text, structured)) && content.map((part, i) => <Part key={i} part={part} />)}
      {content.length === 0 && structured === undefined && <p className={css.about}>The tool answered nothing.</p>}
    </div>
  );
}

function Part({ part }: { part: Content }) {
  switch (part.type) {
    case "text":
      return <Code label="Text" text={pretty(part.text ?? "")} wrap />;
    case "image":
      return (
        <img
          className={css.picture}
          src={`data:${part.mimeType ?? "image/png"};base64,${part.data ?? ""}`}
          alt="What the tool answered"
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
