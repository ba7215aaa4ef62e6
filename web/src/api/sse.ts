import { createParser } from "eventsource-parser";
import { nextTask } from "../ui/idle";
import { parseJson } from "./digits";

export interface ServerEvent {
  name: string;
  data: unknown;
  id?: string;
}

const perTask = 16_384; // characters; more would keep a slow device from reacting to its user

/** Reads a stream of server-sent events until it ends or the signal aborts it. */
export async function readEvents(
  pending: Promise<{ data?: ReadableStream<Uint8Array> | null }>,
  each: (event: ServerEvent) => void,
  opened?: () => void,
): Promise<void> {
  const { data } = await pending;
  if (!data) return;
  opened?.();
  const parser = createParser({
    onEvent: (event) => each({ name: event.event ?? "message", data: parse(event.data), id: event.id }),
  });
  const reader = data.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let inTask = 0; // characters
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (let at = 0; at < value.length; at += perTask) {
        if (inTask >= perTask) {
          await nextTask();
          inTask = 0;
        }
        const piece = value.slice(at, at + perTask);
        parser.feed(piece);
        inTask += piece.length;
      }
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
