// A tool of the app "everything" asks the official TypeScript client a question, through /mcp, in several sessions at the same
// time. The script prints the questions and the results as JSON.
//
//   node elicitation.mjs <url> <workspace> <sessions>
//
// NODE_MODULES is the directory that contains @modelcontextprotocol/sdk.
import { pathToFileURL } from "node:url";

const sdk = (file) => import(pathToFileURL(`${process.env.NODE_MODULES}/@modelcontextprotocol/sdk/dist/esm/${file}.js`));
const { Client } = await sdk("client/index");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");
const { ElicitRequestSchema, CreateMessageRequestSchema } = await sdk("types");

const [url, workspace, sessions] = process.argv.slice(2);

async function session(n) {
  const c = new Client({ name: "e2e", version: "1.0.0" }, { capabilities: { elicitation: {}, sampling: {} } });
  c.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: `client ${n}` } }));
  c.setRequestHandler(CreateMessageRequestSchema, () => ({ role: "assistant", model: "none", content: { type: "text", text: `client ${n} says` } }));
  await c.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers: { "X-Workspace-Id": workspace } } }));
  const call = async (name, args) => JSON.stringify((await c.callTool({ name: `everything__${name}`, arguments: args })).content);
  const said = { elicited: await call("trigger-elicitation-request", {}), sampled: await call("trigger-sampling-request", { prompt: "hello", maxTokens: 10 }) };
  await c.close();
  return said;
}

const asked = [await session(0)]; // one session first, because the app must have asked one question before the others
asked.push(...(await Promise.all(Array.from({ length: Number(sessions) - 1 }, (_, n) => session(n + 1)))));
console.log(JSON.stringify({ asked }));
process.exit(0);
