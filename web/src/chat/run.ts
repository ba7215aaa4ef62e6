import { api, eventStream, type Message, type Schemas } from "../api/client";
import { ApiError } from "../api/http";
import type { paths } from "../api/schema";
import { readEvents, type ServerEvent } from "../api/sse";
import { nextTask } from "../ui/idle";

export interface ToolPart {
  type: "tool";
  id: string;
  name: string;
  input: Record<string, unknown>;
  state: "running" | "ok" | "failed";
  /** The name of the account that the call used. */
  account?: string;
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

/** The model's reasoning, or the summary that replaced earlier messages for the model. */
export interface AsidePart {
  type: "reasoning" | "summary";
  text: string;
  ms?: number;
}

export type Part = { type: "text"; text: string } | AsidePart | ToolPart | QuestionPart;

export interface Attachment {
  name: string;
  mimeType: string;
  /** The content in Base64. An image at an external address has a url instead. */
  data?: string;
  url?: string;
}

export interface Ask {
  message: string;
  conversationId?: string;
  model?: string;
  attachments?: Attachment[];
  disabledApps?: string[];
  appContext?: { serverName?: string; appName?: string };
}

export interface RunState {
  ask: Ask;
  /** The number of messages before this run, which is also the index of the run's own message. */
  since: number;
  conversationId?: string;
  parts: Part[];
  status: "running" | "done" | "failed" | "stopped";
  error?: ApiError;
  /** Whether the server has started the run. */
  sent?: boolean;
  answer?: Schemas["ChatAnswer"];
  /** Whether the run ended on the server while this page was disconnected. The history then contains the answer. */
  gone?: boolean;
  /** Whether the history was read after the run ended. An earlier history may lack the end of the answer. */
  read?: boolean;
}

/** What is known about a run apart from its answer. It does not change with every delta. */
export type RunOutline = Omit<RunState, "parts">;

const perFrame = 1_500; // characters of text
const leastPerFrame = 300;

/** Returns the number of characters in the last paragraph of a text. */
const openLength = (part?: Part) => (part?.type === "text" ? part.text.length - 1 - part.text.lastIndexOf("\n\n") : 0);

const rejoinPauses = [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000, 8_000, 8_000, 8_000, 8_000]; // ms

const lost = () => new ApiError(0, "offline", "The connection was lost. Everything received until then has been kept.");

/** Returns why an answer failed, from the run or from the history. It is undefined unless it failed. */
export function failureOf(message?: Message, state?: RunState): Error | undefined {
  const { stopReason, stopMessage } = message?.metadata ?? {};
  const kept = stopReason === "provider_error" ? new Error(stopMessage ?? "The provider failed.") : undefined;
  return state?.status === "failed" && !isUnsent(state) ? (state.error ?? kept) : kept;
}

/** Reports whether a message never reached the server. It is then safe to send it again. */
export const isUnsent = ({ status, sent, error }: RunOutline) => status === "failed" && !sent && error?.status === 0;

type ChatRequest = NonNullable<paths["/v1/chat"]["post"]["requestBody"]>["content"]["application/json"];

/** Returns the request for a message. The run continues if this page is closed. */
export const requestOf = (ask: Ask) => ({ ...ask, detach: true }) as ChatRequest;

type Stream = Parameters<typeof readEvents>[0];

/** A run of a chat. It continues while the person visits other screens. */
export class Run {
  state: RunState;
  outline: RunOutline;
  private readonly abort = new AbortController();
  private readonly readers = new Set<() => void>();
  private readonly queue: ServerEvent[] = []; // received events that have not been applied to the state yet
  private frame = 0;
  private drained = () => {};
  private last = ""; // id of the last event
  private stopping?: Promise<unknown>;

  /** Starts a run once the server has stopped the previous one. With joins, it follows a run that was started
   * elsewhere or before this page was loaded. */
  constructor(
    ask: Ask,
    since: number,
    private readonly settled: (run: Run) => void,
    private readonly started: (run: Run, conversationId: string) => void,
    private readonly joins = false,
    before?: Run,
  ) {
    this.state = { ask, since, conversationId: ask.conversationId, parts: [], status: "running", sent: joins };
    this.outline = this.state;
    void this.follow(before?.stopping);
  }

  subscribe = (reader: () => void) => {
    this.readers.add(reader);
    return () => void this.readers.delete(reader);
  };

  snapshot = () => this.state;

  /** Stops the run here and on the server. */
  stop(): void {
    this.abort.abort();
    const id = this.state.conversationId;
    if (id && this.state.sent)
      this.stopping = api.DELETE("/v1/conversations/{id}/run", { params: { path: { id } } }).catch(() => undefined);
  }

  /** Records that the history was read after the end of the run. */
  markRead(): void {
    this.change({ read: true });
  }

  private async follow(stopping?: Promise<unknown>): Promise<void> {
    try {
      await stopping;
      if (this.joins) await this.join();
      else
        await this.read(
          api.POST("/v1/chat/stream", { ...eventStream, body: requestOf(this.state.ask), signal: this.abort.signal }),
        );
      if (this.state.status === "running") await this.rejoin();
    } catch (error) {
      this.takeQueued(Infinity);
      if (this.abort.signal.aborted) this.change({ status: "stopped" });
      else if (this.state.status !== "running") this.change({});
      else if (this.joins && error instanceof ApiError && error.status === 404)
        this.change({ status: "failed", gone: true });
      else if (this.state.sent && (!(error instanceof ApiError) || error.status === 0)) await this.rejoin();
      else this.change({ status: "failed", error: error instanceof ApiError ? error : lost() });
    }
    await this.stopping;
    this.settled(this);
  }

  private async read(stream: Stream): Promise<void> {
    await readEvents(stream, (e) => this.enqueue(e));
    if (this.queue.length > 0)
      await new Promise<void>((resolve) => {
        this.drained = resolve;
      });
  }

  private join(): Promise<void> {
    const params = {
      path: { id: this.state.conversationId! },
      header: this.last ? { "Last-Event-ID": this.last } : {},
    };
    return this.read(api.GET("/v1/conversations/{id}/run", { ...eventStream, params, signal: this.abort.signal }));
  }

  /** Joins the run again. It continues on the server without a connection. */
  private async rejoin(): Promise<void> {
    this.change({ status: "failed", error: lost() });
    for (const pause of rejoinPauses) {
      await new Promise((resolve) => {
        setTimeout(resolve, pause);
      });
      if (this.abort.signal.aborted) return this.change({ status: "stopped" });
      try {
        await this.join();
        if (this.state.status === "done" || this.state.error?.status !== 0 || this.state.error.code !== "offline")
          return;
      } catch (error) {
        this.takeQueued(Infinity);
        if (this.abort.signal.aborted) return this.change({ status: "stopped" });
        if (error instanceof ApiError && error.status === 404) return this.change({ gone: true });
        if (error instanceof ApiError && error.status !== 0 && error.status < 500) return;
      }
    }
  }

  /** Queues an event. Each frame processes only a limited amount of text, so that the page stays responsive. */
  private enqueue(event: ServerEvent): void {
    this.last = event.id || this.last;
    if (this.state.error?.code === "offline") this.change({ status: "running", error: undefined }); // the connection has been restored
    this.queue.push(event);
    if (document.hidden)
      this.takeQueued(Infinity); // a hidden page has no frames
    else this.nextFrame();
  }

  private takeQueued(characters: number): void {
    let count = 0;
    let left = characters;
    while (count < this.queue.length && left > 0) {
      const { name, data } = this.queue[count++]!;
      if (name === "text.delta" || name === "reasoning.delta") left -= (data as Schemas["TextDelta"]).text.length;
      this.take(name, data);
      if (name === "chat.start") left -= perFrame; // this event changes the page, so the text waits for the next frame
    }
    this.queue.splice(0, count);
    if (this.queue.length === 0) this.drained();
  }

  private take(name: string, data: unknown): void {
    switch (name) {
      case "chat.start": {
        const { conversationId } = data as Schemas["ChatStart"];
        this.change({ conversationId, sent: true });
        if (this.abort.signal.aborted) this.stop(); // the run was stopped before its conversation was known
        return this.started(this, conversationId);
      }
      case "text.delta":
        return this.addText((data as Schemas["TextDelta"]).text);
      case "reasoning.delta":
        return this.addText((data as Schemas["TextDelta"]).text, "reasoning");
      case "reasoning.done": {
        const { ms } = data as { ms: number };
        const last = this.state.parts.at(-1);
        return last?.type === "reasoning"
          ? this.change({ parts: [...this.state.parts.slice(0, -1), { ...last, ms }] })
          : undefined;
      }
      case "chat.compacted":
        return this.change({
          parts: [...this.state.parts, { type: "summary", text: (data as Schemas["TextDelta"]).text }],
        });
      case "tool.start": {
        const tool = data as Schemas["ToolStart"];
        return this.change({
          parts: [
            ...this.state.parts,
            {
              type: "tool",
              state: "running",
              id: tool.id,
              name: tool.name,
              input: tool.input,
              resourceUri: tool.resourceUri,
            },
          ],
        });
      }
      case "tool.progress": {
        const { id, progress, total, message } = data as Schemas["ToolProgress"];
        return this.edit("tool", id, { progress: { progress, total, message } });
      }
      case "tool.done": {
        const { id, account, ok, ms, output, result, resourceUri } = data as Schemas["ToolDone"];
        return this.edit("tool", id, {
          state: ok ? "ok" : "failed",
          account,
          ms,
          output,
          result,
          ...(resourceUri && { resourceUri }),
        });
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
        return this.change({
          parts: this.state.parts.map((p) =>
            p.type === "question" && p.request.elicitationId === elicitationId ? { ...p, complete: true } : p,
          ),
        });
      }
      case "done":
        return this.change({ status: "done", answer: data as Schemas["ChatAnswer"] });
      case "error": {
        const { error, message } = data as Schemas["ChatError"];
        return this.change({ status: "failed", error: new ApiError(0, error, message) });
      }
    }
  }

  private addText(text: string, type: "text" | "reasoning" = "text"): void {
    const last = this.state.parts.at(-1);
    if (last?.type === type)
      this.change({ parts: [...this.state.parts.slice(0, -1), { type, text: last.text + text }] });
    else this.change({ parts: [...this.state.parts, { type, text }] });
  }

  private edit(type: "tool" | "question", id: string, to: object): void {
    this.change({
      parts: this.state.parts.map((p) => (p.type === type && p.id === id ? ({ ...p, ...to } as Part) : p)),
    });
  }

  private change(to: Partial<RunState>): void {
    this.state = { ...this.state, ...to };
    if (!to.parts) this.outline = this.state;
    this.nextFrame();
  }

  /** Notifies readers once per frame, however many deltas arrive. */
  private nextFrame(): void {
    this.frame ||= requestAnimationFrame(() => void this.showQueued());
  }

  /** Shows what has arrived. It is a task of its own, because the frame's layout and painting take long enough. */
  private async showQueued(): Promise<void> {
    await nextTask();
    // The last paragraph is rendered again as a whole, so it counts too. However long it is, the text goes on.
    this.takeQueued(Math.max(perFrame - openLength(this.state.parts.at(-1)), leastPerFrame));
    for (const reader of this.readers) reader();
    this.frame = 0;
    if (this.queue.length > 0) this.nextFrame();
  }
}
