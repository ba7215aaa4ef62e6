import { expect, test, vi } from "vitest";
import { identity } from "./http";

const sent = vi.hoisted(() => [] as Request[]);
vi.mock("./early", () => ({
  answerTo: (request: Request) => {
    sent.push(request);
    return Promise.resolve(Response.json({}));
  },
}));

test("a request keeps the workspace and token from when it was made", async () => {
  const { Request } = globalThis;
  vi.stubGlobal(
    "Request",
    class extends Request {
      constructor(url: string, init?: RequestInit) {
        super(new URL(url, "http://localhost"), init);
      }
    },
  );
  const { api } = await import("./client");
  Object.assign(identity, { workspace: "ws_a", token: "a" });
  const answer = api.GET("/v1/apps");
  Object.assign(identity, { workspace: "ws_b", token: "b" });
  await answer;
  expect(sent.map(({ headers }) => [headers.get("X-Workspace-Id"), headers.get("Authorization")])).toEqual([
    ["ws_a", "Bearer a"],
  ]);
});
