// Tests very long lists, from made-up responses: 1,000 apps, 10,000 conversations and 100,000 events. Only the visible
// rows are part of the page, and the list can be scrolled to the last one.
import { assert, facts, open } from "./browser.mjs";

const [apps, conversations, events] = [1_000, 10_000, 100_000];
const most = 80; // rows that may be part of the page
const { context, page, problems } = await open();
const now = new Date().toISOString();

await page.route("**/v1/apps", async (route) => {
  const response = await route.fetch();
  const [sample] = (await response.json()).apps;
  await route.fulfill({ response, json: { apps: Array.from({ length: apps }, (_, i) => ({ ...sample, name: `app-${i + 1}`, bundleName: `@many/app-${i + 1}`, ui: undefined })) } });
});
await page.route("**/v1/conversations?*", async (route) => {
  const query = new URL(route.request().url()).searchParams;
  const from = Number(query.get("cursor") ?? 0);
  const to = Math.min(from + Number(query.get("limit")), conversations);
  const list = Array.from({ length: to - from }, (_, i) => ({
    id: `conv_${from + i}`, title: `Conversation ${from + i + 1}`, preview: "", createdAt: now, updatedAt: now, messageCount: 2, ownerId: "usr_default", totalInputTokens: 0, totalOutputTokens: 0,
  }));
  await route.fulfill({ json: { conversations: list, nextCursor: to < conversations ? String(to) : null, totalCount: conversations } });
});
let streams = 0;
await page.route("**/v1/events", async (route) => {
  if (++streams > 1) return; // later streams never start
  const lines = Array.from({ length: events }, (_, i) => `event: data.changed\ndata: ${JSON.stringify({ server: `app-${i + 1}`, tool: "write", timestamp: now })}\n\n`);
  await route.fulfill({ contentType: "text/event-stream", body: lines.join("") });
});

// toTheEnd scrolls to the end of a list, which may grow in the meantime, until its last row is visible.
async function toTheEnd(list, last) {
  const region = page.getByRole("region", { name: list });
  await region.waitFor();
  const scrolled = await (await region.elementHandle()).evaluateHandle((list) => ({ list, most: 0 }));
  await page.waitForFunction(([scrolled, last]) => {
    const { list } = scrolled;
    scrolled.most = Math.max(scrolled.most, list.querySelectorAll("li").length);
    list.scrollTop = list.scrollHeight;
    return [...list.querySelectorAll("li")].some((row) => row.textContent.includes(last));
  }, [scrolled, last], { timeout: 240_000 });
  const { rows, total, inPage } = await scrolled.evaluate(({ list, most }) => ({ rows: most, total: Number(list.querySelector("li").getAttribute("aria-setsize")), inPage: document.querySelectorAll("*").length }));
  assert.ok(rows > 0 && rows <= most, `${list}: ${rows} rows are in the page`);
  assert.ok(inPage < 3_000, `${list}: the page has ${inPage} elements`);
  return total;
}

await page.addInitScript(() => {
  const { get } = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "offsetHeight");
  globalThis.measuredRows = 0;
  Object.defineProperty(HTMLElement.prototype, "offsetHeight", {
    get() {
      if (this.matches("li[data-index]")) globalThis.measuredRows++;
      return get.call(this);
    },
  });
});

await page.goto(`${facts.url}/activity`);
await page.getByRole("region", { name: "Events, 100,000 rows" }).waitFor();
assert.equal(await toTheEnd(/^Events/, "app-1 "), events);
await page.getByRole("link", { name: "Apps" }).click();
assert.equal(await toTheEnd("Installed apps", `app-${apps}`), apps);
await page.getByRole("link", { name: "Chat" }).click();
assert.equal(await toTheEnd("Conversations", `Conversation ${conversations}`), conversations);
assert.equal(await page.evaluate(() => globalThis.measuredRows), 0, "rows that were measured with a layout of their own");
assert.deepEqual(problems, [], "the errors that the page reported");
await page.unrouteAll({ behavior: "ignoreErrors" });
await context.close();
