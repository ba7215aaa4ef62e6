// Eight tabs of a browser share one event stream. The address of a page selects its workspace.
import { assert, facts, open } from "./browser.mjs";

const { context, page } = await open();
let streams = 0;
context.on("request", (request) => { if (new URL(request.url()).pathname === "/v1/events") streams++; });
const pages = [page];
while (pages.length < 8) pages.push(await context.newPage());
for (const each of pages) {
  await each.goto(`${facts.url}/apps`);
  await each.locator("a[href$='/apps/sample']").waitFor();
}
await page.waitForFunction(async () => (await navigator.locks.query()).held.length === 1 && (await navigator.locks.query()).pending.length === 7);
assert.equal(streams, 1, "the tabs opened more than one event stream");

// Events reach every tab. When the tab with the stream closes, another one takes over.
const state = (to) => Promise.all(pages.map((each) => each.getByRole("button", { name: to, exact: true }).waitFor()));
const act = (action) => pages.at(-1).evaluate((a) => fetch(`/v1/apps/sample/${a}`, { method: "POST" }), action);
await act("stop");
await state("Start sample");
await pages.shift().close();
await pages[0].waitForFunction(async () => (await navigator.locks.query()).held.length === 1 && (await navigator.locks.query()).pending.length === 6);
await act("start");
await state("Stop sample");

// The address contains the workspace, so Back returns to the earlier workspace.
const tab = pages[0];
await tab.waitForURL(/\/w\/ws_default\/apps$/);
const made = await tab.evaluate(async () => (await (await fetch("/v1/workspaces", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"name":"Harbour"}' })).json()).workspace.id);
await tab.goto(`${facts.url}/w/${made}/apps`);
await tab.getByText("No apps yet").waitFor();
await tab.getByRole("button", { name: /^Workspace Harbour/ }).waitFor();
await tab.goBack();
await tab.locator("a[href$='/apps/sample']").waitFor();
await tab.getByRole("button", { name: /^Workspace/ }).click();
await tab.getByRole("menuitem", { name: "Harbour" }).click();
await tab.getByText("No apps yet").waitFor();
await tab.waitForURL(new RegExp(`/w/${made}/apps$`));
await tab.goBack();
await tab.locator("a[href$='/apps/sample']").waitFor();
await tab.waitForURL(/\/w\/ws_default\/apps$/);
await tab.goto(`${facts.url}/w/ws_elsewhere/apps`);
await tab.getByText("You are not a member of the workspace").waitFor();
await context.close();
