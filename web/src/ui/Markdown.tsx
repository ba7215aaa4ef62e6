import { memo, useEffect, useMemo, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import type { PluggableList } from "unified";
import { CopyButton } from "./Code";
import css from "./markdown.module.css";

const components: Components = {
  a: ({ href, children }) => <a href={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>,
  // A picture from elsewhere would tell elsewhere that it was seen: it is a link.
  img: ({ src, alt }) => (typeof src === "string" && src.startsWith("data:image/") ? <img src={src} alt={alt ?? ""} /> : <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noopener noreferrer nofollow">{alt || src}</a>),
  table: ({ children }) => <div className={css.scroll} tabIndex={0} role="region" aria-label="Table"><table>{children}</table></div>,
  pre: ({ children, node }) => {
    const code = node?.children[0];
    const text = code?.type === "element" ? textOf(code) : "";
    return <div className={css.pre}><pre tabIndex={0} role="region" aria-label="Code">{children}</pre><CopyButton text={text} className={css.copy} /></div>;
  },
};

interface Node {
  type: string;
  value?: string;
  children?: unknown[];
}

const textOf = (node: Node): string => (node.type === "text" ? (node.value ?? "") : ((node.children ?? []) as Node[]).map(textOf).join(""));

const plain: PluggableList = [rehypeSanitize];
let colourful: PluggableList | null = null;

/** The plugins that colour code, loaded when the first code is shown. */
function usePlugins(wanted: boolean): PluggableList {
  const [plugins, setPlugins] = useState(colourful ?? plain);
  useEffect(() => {
    if (!wanted || colourful) return;
    let gone = false;
    void import("rehype-highlight").then(({ default: highlight }) => {
      colourful = [rehypeSanitize, [highlight, { detect: false }]];
      if (!gone) setPlugins(colourful);
    });
    return () => {
      gone = true;
    };
  }, [wanted]);
  return plugins;
}

const Block = memo(function Block({ text }: { text: string }) {
  const rehype = usePlugins(text.includes("```"));
  return <ReactMarkdown remarkPlugins={[remarkGfm]} rehypePlugins={rehype} components={components}>{text}</ReactMarkdown>;
});

/** Markdown, sanitized. A text that grows is rendered again in its last block only. */
export function Markdown({ text }: { text: string }) {
  const parts = useMemo(() => blocks(text), [text]);
  return <div className={css.markdown}>{parts.map((part, i) => <Block key={i} text={part} />)}</div>;
}

/** Splits a text at blank lines between blocks, but never inside of a list or of code. */
export function blocks(text: string): string[] {
  if (/^\s{0,3}\[[^\]]+\]:\s/m.test(text)) return [text]; // definitions concern all of it
  const all: string[] = [];
  let now: string[] = [];
  let fence = "";
  let list = false;
  for (const line of text.split("\n")) {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (mark && (!fence || (line.trim().startsWith(fence) && line.trim() === mark))) fence = fence ? "" : mark;
    const item = /^\s*([-*+]|\d+[.)])\s/.test(line) || /^\s{2,}\S/.test(line);
    const fresh = now.length > 0 && now.at(-1) === "" && line !== "" && !(list && item) && (!fence || mark !== undefined) && !/^\s{2,}/.test(line);
    if (fresh && (!mark || fence)) {
      all.push(now.join("\n"));
      now = [];
    }
    if (now.every((l) => l === "")) list = item;
    now.push(line);
  }
  if (now.length > 0) all.push(now.join("\n"));
  return all;
}
