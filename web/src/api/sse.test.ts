import { expect, test } from "vitest";
import { nextTask } from "../ui/idle";
import { readEvents } from "./sse";

test("a stream that arrives at once is read in several tasks, and every event once", async () => {
  const sent = Array.from({ length: 1_000 }, (_, i) => `id: ${i}\ndata: {"text":"${"word ".repeat(20)}"}\n\n`).join("");
  const data = new ReadableStream<Uint8Array>({
    start(controller) {
      const bytes = new TextEncoder().encode(sent);
      controller.enqueue(bytes.subarray(0, 60_000));
      for (let at = 60_000; at < bytes.length; at += 1_000) controller.enqueue(bytes.subarray(at, at + 1_000));
      controller.close();
    },
  });
  const ids: (string | undefined)[] = [];
  const most = { inATask: 0, before: 0 };
  let over = false;
  const reading = readEvents(Promise.resolve({ data }), (event) => ids.push(event.id)).then(() => (over = true));
  while (!over) {
    await nextTask();
    most.inATask = Math.max(most.inATask, ids.length - most.before);
    most.before = ids.length;
  }
  await reading;
  expect(ids).toEqual(Array.from({ length: 1_000 }, (_, i) => String(i)));
  expect(most.inATask).toBeLessThan(500);
});
