// The console asks for the permissions that a pasted definition needs before it installs the app.
import { accessible, assert, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const file = `${facts.dir}/own.py`;
await page.goto(`${facts.url}/apps?install=config`);
await page.getByLabel("Another client's configuration").fill(JSON.stringify({ mcpServers: { mine: { command: "python3", args: [file, "redis://localhost:6390"] } } }));
await page.getByRole("button", { name: "Show the plan" }).click();
const install = page.getByRole("button", { name: "Install the servers" });
const script = page.getByLabel(`mine wants to read ${file}.`);
await script.waitFor();
assert.ok(await install.isDisabled(), "the app can be installed before any question is answered");
await accessible(page, "questions about permissions");
await script.selectOption({ label: `Yes, and read everything in ${facts.dir}` });
assert.ok(await install.isDisabled(), "the app can be installed with one question unanswered");
await page.getByLabel("mine wants to connect to localhost:6390 on the server's machine.").selectOption({ label: "No" });
await install.click();
await page.getByText("The servers were imported.").waitFor();
const decided = await page.evaluate(async () => (await (await fetch("/v1/apps/mine/permissions")).json()).permissions);
assert.deepEqual(
  decided.map((p) => [p.kind, p.target, p.state]).sort(),
  [["net", "localhost:6390", "denied"], ["read", facts.dir, "granted"]],
);
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
