// Prints what the official TypeScript client sees and does. The output is JSON.
//
//   node typescript.mjs stdio <command> <argument>…    the tools of a bundle that the script runs itself
//   node typescript.mjs tour <url> <workspace> <file>  calls "everything" and the Go bundle "grower" through /mcp
//   node typescript.mjs tools <address>                the tools that an MCP endpoint lists
//
// NODE_MODULES is the directory that contains @modelcontextprotocol/sdk.
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const sdk = (file) => import(pathToFileURL(`${process.env.NODE_MODULES}/@modelcontextprotocol/sdk/dist/esm/${file}.js`));
const { Client } = await sdk("client/index");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");
const { StdioClientTransport } = await sdk("client/stdio");
const { ToolListChangedNotificationSchema } = await sdk("types");

const client = () => new Client({ name: "e2e", version: "1.0.0" });

async function connect(address, headers = {}) {
  const c = client();
  await c.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));
  return c;
}

async function toolNames(c) {
  const names = [];
  let cursor;
  do {
    const page = await c.listTools({ cursor });
    names.push(...page.tools.map((t) => t.name));
    cursor = page.nextCursor;
  } while (cursor);
  return names;
}

const chosen = (url, workspace) => connect(`${url}/mcp`, { "X-Workspace-Id": workspace });
const call = (c, name, args, options) => c.callTool({ name, arguments: args }, undefined, options);
const text = (result) => result.content[0].text;

async function stdio(command, ...args) {
  const c = new Client({ name: "e2e", version: "1.0.0" }, { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } });
  await c.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
  await pause(300); // some servers add tools when they know their client
  const names = await toolNames(c);
  await c.close();
  return { tools: names };
}

async function tools(address) {
  const c = await connect(address);
  const names = await toolNames(c);
  await c.close();
  return { tools: names };
}

// progress returns the progress messages of a call, in order, followed by the result.
async function progress(c) {
  const order = [];
  const onprogress = (p) => order.push(`${p.progress} of ${p.total}`);
  const result = await call(c, "everything__trigger-long-running-operation", { duration: 1, steps: 4 }, { onprogress });
  order.push(text(result));
  return order;
}

// cancel cancels a call in progress and returns how the call ended.
async function cancel(c, file) {
  const giveUp = new AbortController();
  const ended = call(c, "grower__last", { text: file }, { signal: giveUp.signal }).then(() => "finished", () => "abandoned");
  while (!existsSync(`${file}.begun`)) await pause(10);
  giveUp.abort("cancelled by the test");
  return ended;
}

// change makes a bundle add a tool. It lists the tools again when the server reports the change.
async function change(c) {
  const notified = new Promise((resolve) => c.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
  await call(c, "grower__grow", { text: "grown" });
  await notified;
  return (await toolNames(c)).includes("grower__grown");
}

// crowd makes calls with two clients at the same time. It counts the answers that went to the wrong client.
async function crowd(url, workspace) {
  const clients = await Promise.all([chosen(url, workspace), chosen(url, workspace)]);
  const mistaken = await Promise.all(
    clients.flatMap((c, who) =>
      Array.from({ length: 50 }, async (_, n) => {
        const words = `client ${who}, call ${n}`;
        return text(await call(c, "grower__echo", { text: words })) === words ? 0 : 1;
      }),
    ),
  );
  await Promise.all(clients.map((c) => c.close()));
  return mistaken.reduce((sum, n) => sum + n);
}

async function tour(url, workspace, file) {
  const c = await chosen(url, workspace);
  const seen = {
    server: c.getServerVersion().name,
    tools: await toolNames(c),
    echo: text(await call(c, "everything__echo", { message: "hello" })),
    progress: await progress(c),
    cancelled: await cancel(c, file),
    changed: await change(c),
    mistaken: await crowd(url, workspace),
    ping: await c.ping(),
    failure: (await call(c, "everything__echo", {})).isError,
    unknown: await call(c, "everything__nothing", {}).then(() => "answered", (e) => e.code),
  };
  await c.transport.terminateSession();
  await c.close();
  return seen;
}

const [what, ...args] = process.argv.slice(2);
console.log(JSON.stringify(await { stdio, tools, tour }[what](...args)));
