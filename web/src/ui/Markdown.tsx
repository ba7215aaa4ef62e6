import { memo, useEffect, useEffectEvent, useMemo, useState } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import type { Root, RootContent } from "hast";
import type { PluggableList } from "unified";
import { blocks, definitions, startOfEnd, withDefinitions, type Block } from "./blocks";
import { CopyButton } from "./Code";
import { Formula } from "./Formula";
import { nextTask } from "./idle";
import { formulaOf, withMath } from "./math";
import css from "./markdown.module.css";

const components: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  ),
  // Loading a picture from another site would reveal to that site who reads it, so it becomes a link.
  img: ({ src, alt }) =>
    typeof src === "string" && src.startsWith("data:image/") ? (
      <img src={src} alt={alt ?? ""} />
    ) : (
      <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noopener noreferrer nofollow">
        {alt || src}
      </a>
    ),
  table: ({ children }) => (
    <div className={css.scroll} tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  code: ({ children, className }) => {
    const formula = typeof children === "string" ? formulaOf(children) : undefined;
    return formula ? <Formula {...formula} /> : <code className={className}>{children}</code>;
  },
  pre: ({ children, node }) => {
    const code = node?.children[0];
    const text = code?.type === "element" ? textOf(code) : "";
    return (
      <div className={css.pre}>
        <pre tabIndex={0} role="region" aria-label="Code">
          {children}
        </pre>
        <CopyButton text={text} className={css.copy} />
      </div>
    );
  },
};

interface Node {
  type: string;
  value?: string;
  children?: unknown[];
}

const textOf = (node: Node): string =>
  node.type === "text" ? (node.value ?? "") : ((node.children ?? []) as Node[]).map(textOf).join("");

/** The element that is removed around a chunk. All chunks of a block share one list or table. */
type Without = "nothing" | "list" | "table" | "table and head";

const unwrap = (what: Without) => () => (tree: Root) => {
  tree.children = tree.children.flatMap((child): RootContent[] => {
    if (child.type !== "element") return [];
    if (what === "list" && (child.tagName === "ol" || child.tagName === "ul")) return child.children as RootContent[];
    if (what === "list" || child.tagName !== "table") return [child];
    return child.children.filter(
      (part) => part.type === "element" && (what === "table" || part.tagName !== "thead"),
    ) as RootContent[];
  });
};

type Colouring = [typeof import("rehype-highlight").default, { detect: boolean }];
let colouring: Colouring | null = null;

const plugins = (without: Without, colours: Colouring | null): PluggableList => [
  rehypeSanitize,
  ...(colours ? [colours] : []),
  ...(without === "nothing" ? [] : [unwrap(without)]),
];

const largestColoured = 50_000;

/** Returns the plugin that highlights code. It is loaded when code first appears. */
function useColouring(wanted: boolean): Colouring | null {
  const [loaded, setLoaded] = useState(colouring);
  useEffect(() => {
    if (!wanted || colouring) return;
    let gone = false;
    void import("rehype-highlight").then(({ default: highlight }) => {
      colouring = [highlight, { detect: false }];
      if (!gone) setLoaded(colouring);
    });
    return () => {
      gone = true;
    };
  }, [wanted]);
  return wanted ? (loaded ?? colouring) : null;
}

const Chunk = memo(function Chunk({ text, without = "nothing" }: { text: string; without?: Without }) {
  const colours = useColouring(text.includes("```") && text.length < largestColoured);
  return <ReactMarkdown {...options} rehypePlugins={plugins(without, colours)} children={text} />;
});

const options = { remarkPlugins: [remarkGfm], components };

const paragraph =
  "Some `code`, **bold** and *italic* words, a [link](https://example.com) and https://example.com. ".repeat(4);
const samples = ["Words.", "A `b`.", paragraph, "# A\n\n> B\n\n- C\n- D\n\n| E | F |\n|---|---|\n| g | h |", paragraph];

/** Renders short texts, each in a separate task. A function is compiled when it first runs, so without this the first
 * part of an answer would take several times as long as the others. */
export async function prepare(): Promise<void> {
  for (const text of samples) {
    await nextTask();
    ReactMarkdown({ ...options, rehypePlugins: plugins("nothing", null), children: text });
  }
}

/** Shows code that is still arriving, without highlighting. */
function OpenCode({ text }: { text: string }) {
  const code = text.slice(text.indexOf("\n") + 1 || text.length);
  return (
    <div className={css.pre}>
      <pre tabIndex={0} role="region" aria-label="Code">
        <code>{code}</code>
      </pre>
      <CopyButton text={code} className={css.copy} />
    </div>
  );
}

const BlockView = memo(function BlockView({ block, defined }: { block: Block; defined: ReadonlyMap<string, string> }) {
  const texts = block.kind === "code" ? block.chunks : block.chunks.map((chunk) => withDefinitions(chunk, defined));
  switch (block.kind) {
    case "code":
      return block.open ? <OpenCode text={texts[0]!} /> : <Chunk text={texts[0]!} />;
    case "list": {
      const items = texts.map((text, i) => <Chunk key={i} text={text} without="list" />);
      return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
    }
    case "table":
      return (
        <div className={css.scroll} tabIndex={0} role="region" aria-label="Table">
          <table>
            {texts.map((text, i) => (
              <Chunk key={i} text={text} without={i === 0 ? "table" : "table and head"} />
            ))}
          </table>
        </div>
      );
    case "text":
      return <Chunk text={texts[0]!} />;
  }
});

const perFrame = 1_500; // characters

/** Shows sanitized Markdown. While the text grows, only its last chunk is parsed and rendered again. */
export function Markdown({ text }: { text: string }) {
  const parts = useMemo(() => blocks(withMath(text)), [text]);
  const defined = useMemo(() => definitions(parts), [parts]);
  // The initial text is rendered over several frames. Its end comes first, because the page is scrolled to the end.
  const [raw, setRaw] = useState(() => startOfEnd(parts, parts.length, perFrame));
  const renderMore = useEffectEvent(() => setRaw(startOfEnd(parts, raw, perFrame)));
  useEffect(() => {
    if (raw === 0) return;
    const frame = requestAnimationFrame(() => renderMore());
    return () => cancelAnimationFrame(frame);
  }, [raw]);
  return (
    <div className={css.markdown}>
      {parts.map((block, i) =>
        i < raw ? (
          <p key={i} className={css.raw}>
            {block.chunks.join("\n")}
          </p>
        ) : (
          <BlockView key={i} block={block} defined={defined} />
        ),
      )}
    </div>
  );
}
