import { createParser } from "eventsource-parser";
import { parseJson } from "./digits";
import { errorOf, send } from "./http";

export interface ServerEvent {
  name: string;
  data: unknown;
  id?: string;
}

/** Reads a stream of server-sent events until it ends or the signal aborts it. */
export async function readEvents(path: string, init: RequestInit, each: (event: ServerEvent) => void, opened?: () => void): Promise<void> {
  const headers = new Headers(init.headers);
  headers.set("Accept", "text/event-stream");
  const response = await send(path, { ...init, headers });
  if (!response.ok || !response.body) throw await errorOf(response);
  opened?.();
  const parser = createParser({
    onEvent: (event) => each({ name: event.event ?? "message", data: parse(event.data), id: event.id }),
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
