// A model provider for tests: @copilotkit/aimock, which speaks Anthropic's and OpenAI's protocols. It prints its address
// as JSON on one line, and exits when its standard input ends. Tests set its responses and read its requests over HTTP:
// POST /__aimock/fixtures, GET /__aimock/journal.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const require = createRequire(pathToFileURL(join(process.cwd(), "package.json")));
const { LLMock } = require("@copilotkit/aimock");

const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent" });
await mock.start();

// Record in the journal, as response.left, which clients disconnected before they had received the whole response.
mock.serverInstance.server.on("request", (req, res) => {
  res.on("close", () => {
    const id = req.headers["x-request-id"];
    const entry = res.writableFinished ? undefined : mock.journal.getAll().find((e) => id && e.headers["x-request-id"] === id);
    if (entry) entry.response.left = Date.now();
  });
});
console.log(JSON.stringify({ url: mock.url }));

process.stdin.resume();
process.stdin.on("end", async () => {
  await mock.stop();
  process.exit(0);
});
