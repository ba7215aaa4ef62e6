/** A block of a Markdown text. Each block is rendered separately. A long list is split into chunks of items, and a
 * long table into chunks of rows. Each chunk is a Markdown text of its own, so that only the last chunk of a growing
 * text is parsed again. */
export interface Block {
  kind: "text" | "list" | "table" | "code";
  chunks: string[];
  /** Only for a list: the number of its first item, or undefined if it has bullets. */
  start?: number;
  /** Only for code: whether the closing fence has not arrived yet. */
  open?: boolean;
}

const chunkLines = 16;

const fenceOf = (line: string) => /^ {0,3}(```+|~~~+)/.exec(line)?.[1];
const anyFence = (line: string) => /^\s*(```+|~~~+)/.exec(line)?.[1];
const itemOf = (line: string) => /^ {0,1}(?:([-*+])|(\d{1,9})([.)]))(?:\s|$)/.exec(line);
const isRule = (line: string) => /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line);
const isDelimiter = (line: string) => line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(line);
const interrupts = (line: string) => /^(#{1,6}\s|>)/.test(line) || isRule(line);
const definition = /^ {0,3}\[([^\]]+)\]:\s*\S/;

/** The part of the last text that can no longer change as the text grows, and its blocks. */
let settled: { text: string; all: Block[] } = { text: "", all: [] };

/** Splits a Markdown text into blocks. If it is the last text with more at the end, only its last block is split again. */
export function blocks(text: string): Block[] {
  if (!text.startsWith(settled.text)) settled = { text: "", all: [] };
  const lines = text.slice(settled.text.length).split("\n");
  const unfinished = lines.pop()!;
  const s = new Splitter();
  for (const line of lines) s.line(line);
  const end = settled.text.length + s.from;
  const count = settled.all.length + s.all.length;
  s.line(unfinished);
  const all = [...settled.all, ...s.end()];
  settled = { text: text.slice(0, end), all: all.slice(0, count) };
  return all;
}

/** Returns the start of the fewest blocks before end that together have this many characters, or 0 if all of them have fewer. */
export function startOfEnd(all: Block[], end: number, characters: number): number {
  let start = end;
  for (let left = characters; start > 0 && left > 0;) left -= all[--start]?.chunks.join("").length ?? 0;
  return start;
}

const none: ReadonlyMap<string, string> = new Map();

/** Returns the link definitions outside code, by label. */
export function definitions(all: Block[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const block of all) {
    if (block.kind !== "text" || !block.chunks[0]!.includes("]:")) continue;
    for (const line of block.chunks[0]!.split("\n")) {
      const name = definition.exec(line)?.[1];
      if (name) found.set(name.toLowerCase(), line);
    }
  }
  return found.size > 0 ? found : none;
}

/** Returns a chunk together with the link definitions from other chunks that it uses. */
export function withDefinitions(chunk: string, all: ReadonlyMap<string, string>): string {
  if (all.size === 0 || !chunk.includes("]")) return chunk;
  const used = new Set<string>();
  for (const [, name] of chunk.matchAll(/\[([^\][]+)\]/g)) {
    const line = all.get(name!.toLowerCase());
    if (line && !chunk.includes(line)) used.add(line);
  }
  return used.size > 0 ? `${chunk}\n\n${[...used].join("\n")}` : chunk;
}

class Splitter {
  readonly all: Block[] = []; // the finished blocks
  from = 0; // where the current block starts
  private next = 0; // where the next line starts
  private now: string[] = []; // the lines of the current block, or of its last chunk
  private kind: Block["kind"] = "text";
  private done: string[] = []; // the finished chunks of the current block
  private head: string[] = []; // the head of a table
  private start: number | undefined;
  private marker = ""; // the bullet or delimiter of a list
  private fence = "";
  private blank = false; // whether the previous line was empty

  line(line: string): void {
    this.next += line.length + 1;
    const before = this.blank;
    this.blank = line.trim() === "";
    if (this.fence) return this.inFence(line);
    if (this.kind === "list") this.inList(line, before);
    else if (this.kind === "table") this.inTable(line);
    else this.inText(line, before);
  }

  end(): Block[] {
    this.finish();
    return this.all;
  }

  private inFence(line: string): void {
    this.now.push(line);
    const mark = anyFence(line);
    if (!mark || !mark.startsWith(this.fence) || line.trim() !== mark) return;
    this.fence = "";
    if (this.kind === "code") this.finish();
  }

  private inText(line: string, afterBlank: boolean): void {
    const header = this.now.at(-1);
    if (isDelimiter(line) && header?.includes("|") && !afterBlank) {
      this.now.pop();
      this.finish();
      this.from = this.next - line.length - header.length - 2;
      this.kind = "table";
      this.head = this.now = [header, line];
      return;
    }
    const opens =
      this.now.length > 0 &&
      ((afterBlank && !this.blank && !/^\s{2,}/.test(line)) ||
        fenceOf(line) !== undefined ||
        /^#{1,6}\s/.test(line) ||
        /^([-*+]|1[.)])\s+\S/.test(line));
    if (opens || this.now.every((l) => l === "")) this.begin(line);
    else this.now.push(line);
  }

  private inList(line: string, afterBlank: boolean): void {
    const item = isRule(line) ? null : itemOf(line);
    if (item && (item[1] ?? item[3]) === this.marker) {
      if (this.now.length >= chunkLines) this.nextChunk([]);
    } else if (!this.blank && !/^\s{2,}/.test(line) && (item || afterBlank || interrupts(line) || fenceOf(line)))
      return this.begin(line);
    this.now.push(line);
    this.fence = anyFence(line.replace(/^\s*(?:[-*+]|\d+[.)])\s+/, "")) ?? "";
  }

  private inTable(line: string): void {
    if (this.blank || interrupts(line) || fenceOf(line) || (!line.includes("|") && itemOf(line)))
      return this.begin(line);
    if (this.now.length >= chunkLines) this.nextChunk(this.head);
    this.now = [...this.now, line];
  }

  /** Starts a new block with this line. */
  private begin(line: string): void {
    this.finish();
    this.from = this.next - line.length - 1;
    this.now = [line];
    const fence = fenceOf(line);
    const item = isRule(line) ? null : itemOf(line);
    if (fence) [this.kind, this.fence] = ["code", fence];
    else if (item) {
      this.kind = "list";
      this.marker = (item[1] ?? item[3])!;
      this.start = item[2] === undefined ? undefined : Number(item[2]);
      this.fence = anyFence(line.replace(/^\s*(?:[-*+]|\d+[.)])\s+/, "")) ?? "";
    }
  }

  private nextChunk(first: string[]): void {
    this.done.push(this.now.join("\n"));
    this.now = [...first];
  }

  private finish(): void {
    this.from = this.next;
    if (this.now.some((l) => l !== "")) {
      const block: Block = { kind: this.kind, chunks: [...this.done, this.now.join("\n")] };
      if (this.kind === "list") block.start = this.start;
      if (this.kind === "code") block.open = this.fence !== "";
      this.all.push(block);
    }
    [this.now, this.done, this.head, this.kind, this.start, this.marker, this.fence] = [
      [],
      [],
      [],
      "text",
      undefined,
      "",
      "",
    ];
  }
}
