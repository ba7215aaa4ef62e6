import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Message } from "../api/client";
import { ApiError } from "../api/http";
import type { ServerEvent } from "../api/sse";
import { nextTask } from "../ui/idle";
import { failureOf, isUnsent, Run, type Ask, type RunOutline, type RunState } from "./run";

type Each = (event: ServerEvent) => void;
type Response = (each: Each) => void | Promise<void>;

const mocks = vi.hoisted(() => ({ responses: [] as Response[], deleted: vi.fn(() => Promise.resolve({})) }));

vi.mock("../api/client", () => ({
  api: { POST: () => "post", GET: () => "get", DELETE: mocks.deleted },
  eventStream: {},
}));
vi.mock("../api/sse", () => ({ readEvents: async (_: unknown, each: Each) => await mocks.responses.shift()?.(each) }));

/** Animation frames, which run when the test calls nextFrame. */
let frames: (() => void)[] = [];
const nextFrame = () => frames.splice(0).forEach((frame) => frame());

beforeEach(() => {
  frames = [];
  mocks.responses = [];
  mocks.deleted.mockClear();
  vi.stubGlobal("document", { hidden: true });
  vi.stubGlobal("requestAnimationFrame", (frame: () => void) => frames.push(frame));
});

const event = (name: string, data: object): ServerEvent => ({ name, data, id: name });
const start = event("chat.start", { conversationId: "conv_1", runId: "run_1" });
const text = (words: string) => event("text.delta", { runId: "run_1", text: words });
const done = event("done", { response: "", conversationId: "conv_1" });

/** Sends a message and uses these responses in order, until the run has settled. */
const settle = (ask: Ask, ...responses: Response[]) => {
  mocks.responses = responses;
  return new Promise<Run>((resolve) => new Run(ask, 0, resolve, () => undefined));
};

const sends =
  (...events: ServerEvent[]): Response =>
  (each) =>
    events.forEach(each);
const fails =
  (error: Error): Response =>
  () =>
    Promise.reject(error);

describe("a run", () => {
  test("joins deltas into parts, in the order of the events", async () => {
    const { state } = await settle(
      { message: "hi" },
      sends(
        start,
        event("reasoning.delta", { text: "Hm" }),
        event("reasoning.done", { ms: 5 }),
        text("Let me "),
        text("look."),
        event("tool.start", { id: "t1", name: "files__read", input: { path: "a" } }),
        event("tool.progress", { id: "t1", progress: 1, total: 2 }),
        event("tool.done", { id: "t1", ok: true, ms: 7, output: "content" }),
        text("Done."),
        done,
      ),
    );
    expect(state.status).toBe("done");
    expect(state.conversationId).toBe("conv_1");
    expect(state.parts).toMatchObject([
      { type: "reasoning", text: "Hm", ms: 5 },
      { type: "text", text: "Let me look." },
      { type: "tool", state: "ok", output: "content", progress: { progress: 1, total: 2 } },
      { type: "text", text: "Done." },
    ]);
  });

  test("matches results to calls by id", async () => {
    const call = (id: string) => event("tool.start", { id, name: "a__b", input: {} });
    const { state } = await settle(
      { message: "hi" },
      sends(start, call("t1"), call("t2"), event("tool.done", { id: "t2", ok: false, ms: 1, output: "no" }), done),
    );
    expect(state.parts).toMatchObject([
      { id: "t1", state: "running" },
      { id: "t2", state: "failed", output: "no" },
    ]);
  });

  test("reports the server's error", async () => {
    const { state } = await settle(
      { message: "hi" },
      sends(start, event("error", { error: "provider_error", message: "Broken" })),
    );
    expect(state).toMatchObject({ status: "failed", error: { code: "provider_error", message: "Broken" } });
    expect(isUnsent(state)).toBe(false);
  });

  test("is unsent if it never reached the server", async () => {
    const { state } = await settle(
      { message: "hi" },
      fails(new ApiError(0, "offline", "The server cannot be reached.")),
    );
    expect(isUnsent(state)).toBe(true);
  });

  test("is rejoined if the connection ends before the run", async () => {
    vi.useFakeTimers();
    const settled = settle(
      { message: "hi" },
      sends(start, text("Half ")),
      fails(new ApiError(0, "offline", "")),
      sends(text("whole"), done),
    );
    await vi.runAllTimersAsync();
    vi.useRealTimers();
    const { state } = await settled;
    expect(state).toMatchObject({ status: "done", parts: [{ type: "text", text: "Half whole" }] });
  });

  test("is marked as gone if it ended on the server while disconnected", async () => {
    vi.useFakeTimers();
    const settled = settle({ message: "hi" }, sends(start, text("Half")), fails(new ApiError(404, "not_found", "")));
    await vi.runAllTimersAsync();
    vi.useRealTimers();
    expect((await settled).state.gone).toBe(true);
  });

  test("also ends on the server if it is stopped", async () => {
    let run: Run | undefined;
    const settled = new Promise<void>((resolve) => {
      mocks.responses = [
        (each) => {
          each(start);
          return new Promise((_, reject) =>
            queueMicrotask(() => {
              run!.stop();
              reject(new Error("aborted"));
            }),
          );
        },
      ];
      run = new Run(
        { message: "hi" },
        0,
        () => resolve(),
        () => undefined,
      );
    });
    await settled;
    expect(run!.state.status).toBe("stopped");
    expect(mocks.deleted).toHaveBeenCalledWith("/v1/conversations/{id}/run", { params: { path: { id: "conv_1" } } });
  });

  test("starts once the server has stopped the previous run", async () => {
    let stopped = (_: object) => undefined as void;
    mocks.deleted.mockReturnValueOnce(new Promise((resolve) => (stopped = resolve)));
    mocks.responses = [(each) => (each(start), new Promise(() => undefined)), sends(start, done)];
    const first = new Run(
      { message: "hi" },
      0,
      () => undefined,
      () => first.stop(),
    );
    await vi.waitFor(() => expect(mocks.deleted).toHaveBeenCalled());
    const settled = new Promise<Run>(
      (resolve) => new Run({ message: "again" }, 0, resolve, () => undefined, false, first),
    );
    await Promise.resolve();
    expect(mocks.responses).toHaveLength(1);
    stopped({});
    expect((await settled).state.status).toBe("done");
  });

  test("shows what arrived in a task after the frame, not within it", async () => {
    vi.stubGlobal("document", { hidden: false });
    mocks.responses = [sends(start, text("words"), done)];
    const run = new Run(
      { message: "hi" },
      0,
      () => undefined,
      () => undefined,
    );
    while (frames.length === 0) await nextTask();
    nextFrame();
    expect(run.snapshot().sent).toBe(false);
    await vi.waitFor(() => expect(run.snapshot().sent).toBe(true));
  });

  test("has an outline that changes when the run ends, but not with every delta", async () => {
    const outlines: RunOutline[] = [];
    const settled = new Promise((resolve) => {
      mocks.responses = [
        (each) =>
          [start, text("a"), text("b"), done].forEach((next) => {
            each(next);
            outlines.push(run.outline);
          }),
      ];
      const run: Run = new Run({ message: "hi" }, 0, resolve, () => undefined);
    });
    await settled;
    expect(outlines[1]).toBe(outlines[0]);
    expect(outlines[2]).toBe(outlines[0]);
    expect(outlines[3]).toMatchObject({ status: "done", conversationId: "conv_1" });
  });

  test("takes in at most 1,500 characters a frame while the page is visible", async () => {
    vi.stubGlobal("document", { hidden: false });
    const settled = settle(
      { message: "hi" },
      sends(start, ...Array.from({ length: 30 }, () => text("x".repeat(100))), done),
    );
    let run: Run | undefined;
    void settled.then((to) => {
      run = to;
    });
    let count = 0;
    while (!run && count < 100) {
      await nextTask();
      nextFrame();
      count++;
    }
    expect((await settled).state.parts).toMatchObject([{ type: "text", text: "x".repeat(3000) }]);
    expect(count).toBeGreaterThan(1);
  });

  test("takes in less if the last paragraph, which is rendered again, is long already", async () => {
    vi.stubGlobal("document", { hidden: false });
    mocks.responses = [sends(start, ...Array.from({ length: 6 }, () => text("x".repeat(1_000))), done)];
    const run = new Run(
      { message: "hi" },
      0,
      () => undefined,
      () => undefined,
    );
    const lengths: number[] = [];
    run.subscribe(() =>
      lengths.push(run.snapshot().parts.reduce((sum, p) => sum + (p.type === "text" ? p.text.length : 0), 0)),
    );
    while (run.snapshot().status !== "done") {
      await nextTask();
      nextFrame();
    }
    expect(lengths.slice(0, 4)).toEqual([0, 2_000, 3_000, 4_000]);
  });
});

test("a failed run without an error has the one in the history", () => {
  const message = { metadata: { stopReason: "provider_error", stopMessage: "The key is wrong." } } as Message;
  const failed: RunState = { ask: { message: "hi" }, since: 0, parts: [], status: "failed", sent: true };
  expect(failureOf(message, failed)?.message).toBe("The key is wrong.");
  expect(failureOf(message, { ...failed, error: new ApiError(0, "engine_error", "It broke.") })?.message).toBe(
    "It broke.",
  );
  expect(failureOf(undefined, failed)).toBeUndefined();
});
