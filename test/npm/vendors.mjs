// The vendors' own SDKs talk to the strict providers in core/chat. Each gets a streamed answer with two tool calls and, if the
// SDK can send that answer back, the turn after it. The script prints what each SDK understood.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const require = createRequire(pathToFileURL(join(process.cwd(), "package.json")));
const { default: Anthropic } = require("@anthropic-ai/sdk");
const { default: OpenAI, AzureOpenAI } = require("openai");

const schema = { type: "object", properties: { path: { type: "string" } } };
const names = ["files__see", "files__do"];
const said = { role: "user", content: "please go on" };

async function anthropic({ base }) {
  const client = new Anthropic({ apiKey: "k", baseURL: base });
  const tools = names.map((name) => ({ name, description: name, input_schema: schema }));
  const ask = (messages) => client.messages.stream({ model: "m", max_tokens: 100, messages, tools }).finalMessage();
  const first = await ask([said]);
  const calls = first.content.filter((block) => block.type === "tool_use");
  const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "done" }));
  const second = await ask([said, { role: "assistant", content: first.content }, { role: "user", content: results }]);
  const refused = await client.messages.create({ model: "m", max_tokens: 100, messages: [said], colour: "red" }).catch((error) => error);
  return { calls: calls.map((c) => `${c.name} ${c.input.path}`), text: second.content.map((c) => c.text).join(""), refused: refused.status };
}

async function openai({ base, id, limit, goesBack }) {
  const [at, query] = base.split("?");
  const azure = { apiKey: "k", endpoint: at.split("/openai/")[0], deployment: "m", apiVersion: query?.split("=")[1] };
  const client = id === "azure" ? new AzureOpenAI(azure) : new OpenAI({ apiKey: "k", baseURL: base });
  const tools = names.map((name) => ({ type: "function", function: { name, description: name, parameters: schema } }));
  const ask = async (messages) => {
    let content = "";
    const calls = [];
    for await (const { choices } of await client.chat.completions.create({ model: "m", [limit]: 100, messages, tools, stream: true })) {
      const { content: text, tool_calls = [] } = choices[0]?.delta ?? {};
      if (typeof text === "string") content += text;
      for (const { index, id, function: { name, arguments: more = "" } } of tool_calls) {
        if (id) calls.push({ index, id, type: "function", function: { name, arguments: "" } });
        calls.findLast((c) => c.index === index).function.arguments += more;
      }
    }
    return { content, calls };
  };
  const { content, calls } = await ask([said]);
  const out = { calls: calls.map((c) => `${c.function.name} ${JSON.parse(c.function.arguments).path}`) };
  const results = calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "done" }));
  if (goesBack) out.text = (await ask([said, { role: "assistant", content, tool_calls: calls.map(({ index, ...call }) => call) }, ...results])).content;
  // Every provider refuses a result without its call.
  const refused = await client.chat.completions.create({ model: "m", [limit]: 100, messages: [said, ...results] }).catch((error) => error);
  return { ...out, refused: refused.status };
}

const out = {};
for (const vendor of JSON.parse(process.argv[2])) {
  out[vendor.id] = await (vendor.id === "anthropic" ? anthropic : openai)(vendor).catch((error) => ({ error: String(error) }));
}
console.log(JSON.stringify(out));
