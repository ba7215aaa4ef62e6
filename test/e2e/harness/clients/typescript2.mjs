// Prints what the second generation of the official TypeScript client sees and does. The output is JSON.
//
//   node typescript2.mjs <url> <workspace> <revision>   calls the app "everything" through /mcp
//
// The revisions of 2025 have sessions. Revision 2026-07-28 has no sessions, and questions to the client are part of
// results.
// NODE_MODULES is the directory that contains @modelcontextprotocol/client.
import { pathToFileURL } from "node:url";

const { Client, StreamableHTTPClientTransport } = await import(
  pathToFileURL(`${process.env.NODE_MODULES}/@modelcontextprotocol/client/dist/index.mjs`)
);
const [url, workspace, revision] = process.argv.slice(2);

const c = new Client(
  { name: "e2e", version: "2.0.0" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: revision === "2026-07-28" ? { pin: revision } : "legacy" },
  },
);
const questions = [];
c.setRequestHandler("elicitation/create", (question) => {
  questions.push(question.params.message);
  return { action: "accept", content: { name: "the second client" } };
});
await c.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers: { "X-Workspace-Id": workspace } } }));

const call = (name, args, options) => c.callTool({ name: `everything__${name}`, arguments: args }, options);
const progress = [];
const long = await call("trigger-long-running-operation", { duration: 1, steps: 4 }, { onprogress: (p) => progress.push(`${p.progress} of ${p.total}`) });
progress.push(long.content[0].text);

const seen = {
  server: c.getServerVersion().name,
  revision: c.getNegotiatedProtocolVersion(),
  tools: (await c.listTools()).tools.map((t) => t.name),
  echo: (await call("echo", { message: "hello" })).content[0].text,
  structured: (await call("get-structured-content", { location: "Chicago" })).structuredContent,
  failure: (await call("echo", {})).isError,
  progress,
  elicited: JSON.stringify((await call("trigger-elicitation-request", {})).content),
  questions,
};
await c.close();
console.log(JSON.stringify(seen));
process.exit(0);
