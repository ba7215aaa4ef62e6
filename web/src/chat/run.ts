import type { Schemas } from "../api/client";
import { ApiError } from "../api/http";
import { readEvents, type ServerEvent } from "../api/sse";

export interface ToolPart {
  type: "tool";
  id: string;
  name: string;
  input: Record<string, unknown>;
  state: "running" | "ok" | "failed";
  ms?: number;
  output?: string;
  result?: Record<string, unknown>;
  resourceUri?: string;
  progress?: { progress: number; total?: number; message?: string };
}

export interface QuestionPart {
  type: "question";
  id: string;
  request: Schemas["ElicitationRequest"];
  answer?: Schemas["ElicitationAnswer"];
  complete?: boolean;
}

export type Part = { type: "text"; text: string } | ToolPart | QuestionPart;

export interface Attachment {
  name: string;
  mimeType: string;
  data: string;
}

export interface Ask {
  message: string;
  conversationId?: string;
  model?: string;
  attachments?: Attachment[];
  appContext?: { serverName?: string; appName?: string };
}

export interface RunState {
  ask: Ask;
  /** How many messages the conversation had before this run: the index of its own message. */
  since: number;
  conversationId?: string;
  parts: Part[];
  status: "running" | "done" | "failed" | "stopped";
  error?: ApiError;
  answer?: Schemas["ChatAnswer"];
  /** Whether the history was read after the run had ended. One that was read before may lack the end of the answer. */
  read?: boolean;
}

const perFrame = 1_500; // characters of text

const lost = () => new ApiError(0, "offline", "The connection was lost. What was said until then is kept.");

/** One run of a chat, which goes on whatever screen is shown. */
export class Run {
  state: RunState;
  private readonly abort = new AbortController();
  private readonly readers = new Set<() => void>();
  private readonly queue: ServerEvent[] = []; // what came and is not in the state yet
  private frame = 0;
  private drained = () => {};

  constructor(ask: Ask, since: number, private readonly settled: (run: Run) => void, private readonly started: (run: Run, conversationId: string) => void) {
    this.state = { ask, since, conversationId: ask.conversationId, parts: [], status: "running" };
    void this.follow();
  }

  subscribe = (reader: () => void) => {
    this.readers.add(reader);
    return () => void this.readers.delete(reader);
  };

  snapshot = () => this.state;

  /** Ends the run on the server too: it ends when its client leaves. */
  stop(): void {
    this.abort.abort();
  }

  /** The history was read after the end. */
  markRead(): void {
    this.change({ read: true });
  }

  private async follow(): Promise<void> {
    try {
      const body = JSON.stringify(this.state.ask);
      await readEvents("/v1/chat/stream", { method: "POST", body, headers: { "Content-Type": "application/json" }, signal: this.abort.signal }, (e) => this.enqueue(e));
      if (this.queue.length > 0) await new Promise<void>((resolve) => { this.drained = resolve; });
      if (this.state.status === "running") this.change({ status: "failed", error: lost() });
    } catch (error) {
      this.takeQueued(Infinity);
      if (this.abort.signal.aborted) this.change({ status: "stopped" });
      else if (this.state.status === "running") this.change({ status: "failed", error: error instanceof ApiError ? error : lost() });
    }
    this.settled(this);
  }

  /** Takes in what came, so much text in a frame that the page has time for others, however much came at once. */
  private enqueue(event: ServerEvent): void {
    this.queue.push(event);
    if (document.hidden) this.takeQueued(Infinity); // it has no frames
    else this.nextFrame();
  }

  private takeQueued(characters: number): void {
    let count = 0;
    let left = characters;
    while (count < this.queue.length && left > 0) {
      const { name, data } = this.queue[count++]!;
      if (name === "text.delta") left -= (data as Schemas["TextDelta"]).text.length;
      this.take(name, data);
    }
    this.queue.splice(0, count);
    if (this.queue.length === 0) this.drained();
  }

  private take(name: string, data: unknown): void {
    switch (name) {
      case "chat.start": {
        const { conversationId } = data as Schemas["ChatStart"];
        this.change({ conversationId });
        return this.started(this, conversationId);
      }
      case "text.delta": return this.addText((data as Schemas["TextDelta"]).text);
      case "tool.start": {
        const tool = data as Schemas["ToolStart"];
        return this.change({ parts: [...this.state.parts, { type: "tool", state: "running", id: tool.id, name: tool.name, input: tool.input, resourceUri: tool.resourceUri }] });
      }
      case "tool.progress": {
        const { id, progress, total, message } = data as Schemas["ToolProgress"];
        return this.edit("tool", id, { progress: { progress, total, message } });
      }
      case "tool.done": {
        const { id, ok, ms, output, result, resourceUri } = data as Schemas["ToolDone"];
        return this.edit("tool", id, { state: ok ? "ok" : "failed", ms, output, result, ...(resourceUri && { resourceUri }) });
      }
      case "elicitation.request": {
        const request = data as Schemas["ElicitationRequest"];
        return this.change({ parts: [...this.state.parts, { type: "question", id: request.id, request }] });
      }
      case "elicitation.answer": {
        const answer = data as Schemas["ElicitationAnswer"];
        return this.edit("question", answer.id, { answer });
      }
      case "elicitation.complete": {
        const { elicitationId } = data as Schemas["ElicitationComplete"];
        return this.change({ parts: this.state.parts.map((p) => (p.type === "question" && p.request.elicitationId === elicitationId ? { ...p, complete: true } : p)) });
      }
      case "done": return this.change({ status: "done", answer: data as Schemas["ChatAnswer"] });
      case "error": {
        const { error, message } = data as Schemas["ChatError"];
        return this.change({ status: "failed", error: new ApiError(0, error, message) });
      }
    }
  }

  private addText(text: string): void {
    const last = this.state.parts.at(-1);
    if (last?.type === "text") this.change({ parts: [...this.state.parts.slice(0, -1), { type: "text", text: last.text + text }] });
    else this.change({ parts: [...this.state.parts, { type: "text", text }] });
  }

  private edit(type: "tool" | "question", id: string, to: object): void {
    this.change({ parts: this.state.parts.map((p) => (p.type === type && p.id === id ? ({ ...p, ...to } as Part) : p)) });
  }

  private change(to: Partial<RunState>): void {
    this.state = { ...this.state, ...to };
    this.nextFrame();
  }

  /** Readers are notified once a frame, however many deltas came. */
  private nextFrame(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.takeQueued(perFrame);
      for (const reader of this.readers) reader();
      this.frame = 0;
      if (this.queue.length > 0) this.nextFrame();
    });
  }
}
