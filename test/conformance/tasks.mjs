// The official client for tasks, @modelcontextprotocol/ext-tasks, calls the tools of an app. The script prints what the
// client saw as JSON.
//
//   node tasks.mjs <modules> <url> <app> [resume <reference>]
//
// With `resume`, the script follows the last task of an earlier run.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, url, app, resume, reference] = process.argv.slice(2);
const from = (name) => import(pathToFileURL(createRequire(modules + "/").resolve(name)));
const { Client, StreamableHTTPClientTransport } = await from("@modelcontextprotocol/client");
const { createApplicationInputHandler, createTaskSessionFromClient } = await import(
  pathToFileURL(modules + "/@modelcontextprotocol/ext-tasks/dist/client/index.js"));

const protocolVersion = "2026-07-28";
const clientInfo = { name: "tasks", version: "1" };
const clientCapabilities = { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };
const headers = { "X-Workspace-Id": "ws_default" };

// rawDispatch sends a request that the session has framed. The last message in the response is the answer.
let sent = 0;
async function rawDispatch(request, options) {
  const { method, params } = request;
  const name = params.taskId ?? params.name;
  const resp = await fetch(url, {
    method: "POST",
    signal: options?.signal,
    headers: {
      ...headers, "Content-Type": "application/json", Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": protocolVersion, "Mcp-Method": method, "Mcp-Name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++sent, ...request }),
  });
  const messages = (await resp.text()).split("\n").map((line) => line.replace(/^data: /, "")).filter((line) => line.startsWith("{"));
  const { result, error } = JSON.parse(messages.at(-1));
  return error ? { kind: "error", error } : { kind: "result", result };
}

const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: { pin: protocolVersion } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const asked = [];
const session = createTaskSessionFromClient(client, {
  endpointId: "ropewalk",
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  tools: { currentTool: () => undefined },
  onInputRequest: createApplicationInputHandler({
    elicitation: async (request) => {
      asked.push(request.params.message);
      return { action: "accept", content: { name: "Ada" } };
    },
  }),
});

const summary = (kind, outcome) => ({
  kind, status: outcome.status, text: outcome.result?.content?.[0]?.text, isError: outcome.result?.isError, error: outcome.error?.message,
});
const settled = async (execution) => summary(execution.kind, (await execution.settle()).outcome);
const call = (tool, args = {}) => session.callTool(`${app}__${tool}`, args);

const seen = { capabilities: session.capabilities };
if (resume) {
  seen.resumed = await settled(await session.resumeTask(JSON.parse(reference)));
} else {
  seen.greet = await settled(await call("greet", { name: "Ada" }));
  seen.slow = await settled(await call("slow_compute", { seconds: 1, label: "soon" }));
  seen.wait = await settled(await call("wait", { seconds: 7 }));
  seen.failing = await settled(await call("failing_job"));
  seen.broken = await settled(await call("protocol_error_job"));
  seen.confirmed = await settled(await call("confirm_delete"));
  seen.two = await settled(await call("multi_input"));
  seen.greeted = await settled(await call("test_tool_with_task"));
  const cancelled = await call("slow_compute", { seconds: 600 });
  await cancelled.cancel();
  seen.cancelled = await session.task(cancelled.handle.taskId).snapshot().then((task) => task.status);
  await session.task("task_0").snapshot().catch((err) => (seen.unknown = err.message));
  seen.reference = (await call("slow_compute", { seconds: 3, label: "later" })).serializeReference();
  seen.asked = asked.sort();
}
console.log(JSON.stringify(seen));
process.exit(); // exit like a crashed client, because closing the session would cancel its tasks
