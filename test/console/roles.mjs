// Checks every screen as an organization admin, a workspace admin and a member, at three widths and at 200% zoom. Each
// screen must load without an error, be accessible, and fit the width of the page.
import { assert, excess, facts, launch, open, settled, violationsOn, wide } from "./browser.mjs";

const browser = await launch();

// visitor logs a person in through the identity provider, skipping its login page.
async function visitor(account) {
  const at = await open({ browser });
  const form = await at.context.request.get(`${facts.url}/v1/auth/authorize`);
  await at.context.request.get(`${form.url()}?account=${account}`);
  await at.page.goto(`${facts.url}/chat`);
  await at.page.getByRole("button", { name: /^Account of/ }).waitFor();
  return at;
}

const as = ({ page }, method, path, body) => page.evaluate(async ([method, path, body]) => {
  const response = await fetch(path, { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}, [method, path, body]);

const people = { "organization admin": await visitor("ada"), "workspace admin": await visitor("ben"), member: await visitor("chiara") };
const ada = people["organization admin"];
const { workspace } = await as(ada, "GET", "/v1/workspace");
const { user } = await as(people["workspace admin"], "GET", "/v1/workspace");
await as(ada, "POST", `/v1/workspaces/${workspace.id}/members`, { user: user.id, role: "admin" });

// At 200% zoom, a window of 1,440 px is 720 CSS pixels wide.
const widths = [1440, 768, 720, 375];
const found = [];
const seen = {};

async function look(role, page, path) {
  await page.goto(facts.url + path);
  await page.locator("h1").first().waitFor({ state: "attached" });
  await settled(page);
  for (const width of widths) {
    await page.setViewportSize({ ...wide, width });
    await settled(page);
    const over = await excess(page);
    if (over > 0) found.push(`${role}, ${path} at ${width} px: the page is ${over} px too wide`);
    if (width === 768 || width === 720) continue;
    for (const v of await violationsOn(page)) found.push(`${role}, ${path} at ${width} px: ${v.id}: ${v.nodes.join(" | ")}`);
  }
  await page.setViewportSize(wide);
  for (const alert of await page.getByRole("alert").allTextContents()) found.push(`${role}, ${path}: the page shows the error ${alert}`);
}

async function visit(role, { page, problems }) {
  const { conversationId } = await as({ page }, "POST", "/v1/chat", { message: "please greet" });
  await page.reload();
  const links = page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link");
  await links.first().waitFor();
  const screens = await links.evaluateAll((all) => all.map((a) => new URL(a.href)).map((url) => url.pathname));
  seen[role] = screens.map((path) => path.split("/").at(-1));
  const here = screens[0].replace(/\/chat$/, "");
  for (const path of [...screens, `${here}/chat/${conversationId}`, `${here}/apps/${facts.app}`, `${here}/tools?tool=${facts.tool}`]) await look(role, page, path);
  found.push(...problems.map((problem) => `${role}: ${problem}`));
}

for (const [role, at] of Object.entries(people)) await visit(role, at);
await browser.close();
assert.deepEqual(found, []);
assert.ok(seen.member.length < seen["workspace admin"].length && seen["workspace admin"].length < seen["organization admin"].length, JSON.stringify(seen));
