// The page never shows outdated data: not from a request that began before a change, not after many events at once, and
// not in a conversation that is being answered elsewhere.
import { assert, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const app = (await (await fetch(`${facts.url}/v1/apps`)).json()).apps[0];
const stream = (events) => ({ contentType: "text/event-stream", body: events.map(({ event, ...data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("") });

// leave navigates away from the app. Otherwise the page would reconnect and receive the events meant for the next one.
async function leave() {
  await page.goto("about:blank");
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

// gate returns a promise and the function that resolves it.
function gate() {
  let open;
  return { passed: new Promise((resolve) => { open = resolve; }), open: (value) => open(value) };
}

// An event arrives while the first list of apps is loading. That list is discarded, and the next one is shown.
const [first, second] = [gate(), gate()];
let lists = 0;
let streams = 0;
await page.route("**/v1/events", async (route) => {
  if (++streams > 1) return; // later streams never start
  await first.passed;
  await route.fulfill(stream([{ event: "bundle.installed", name: "newer" }]));
});
await page.route("**/v1/apps", async (route) => {
  if (++lists === 1) {
    first.open();
    await second.passed;
    return route.fulfill({ json: { apps: [{ ...app, name: "older", ui: undefined }] } }).catch(() => undefined); // the page has cancelled this request
  }
  second.open();
  await route.fulfill({ json: { apps: [{ ...app, name: "newer", ui: undefined }] } });
});
await page.goto(`${facts.url}/apps`);
await page.getByRole("link", { name: "newer", exact: true }).waitFor();
assert.equal(await page.getByRole("link", { name: "older", exact: true }).count(), 0);
await leave();

// Two thousand events at once cause a few requests, not two thousand, and all of them are shown.
lists = streams = 0;
await page.route("**/v1/events", async (route) => {
  if (++streams > 1) return;
  await route.fulfill(stream(Array.from({ length: 2_000 }, (_, i) => ({ event: "bundle.started", name: `app-${i + 1}` }))));
});
await page.route("**/v1/apps", async (route) => {
  lists++;
  await route.fallback();
});
await page.goto(`${facts.url}/apps`);
await page.getByRole("link", { name: "Activity" }).click();
await page.getByRole("region", { name: "Events, 2,000 rows" }).waitFor();
assert.ok(lists < 20, `2,000 events caused ${lists} requests`);
await leave();

// With many pages of conversations, an event refreshes only the first page, and the list keeps its length.
const conversations = 1_050;
let renamed = false;
let asked = [];
streams = 0;
const rename = gate();
await page.route("**/v1/events", async (route) => {
  if (++streams > 1) return;
  await rename.passed;
  await route.fulfill(stream([{ event: "conversation.updated", id: "conv_1049", title: "The new title" }]));
});
await page.route("**/v1/conversations?*", async (route) => {
  const query = new URL(route.request().url()).searchParams;
  const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit"))];
  asked.push(from);
  const row = (i, title) => ({
    id: `conv_${i}`, title, preview: "", createdAt: "2026-01-01T00:00:00Z", updatedAt: new Date(Date.UTC(2026, 0, 2) - i * 1_000).toISOString(),
    messageCount: 2, ownerId: "usr_default", totalInputTokens: 0, totalOutputTokens: 0,
  });
  const all = Array.from({ length: conversations }, (_, i) => row(i, `Conversation ${i + 1}`));
  if (renamed) all.unshift({ ...all.pop(), title: "The new title", updatedAt: new Date(Date.UTC(2026, 0, 3)).toISOString() });
  const to = from + limit;
  await route.fulfill({ json: { conversations: all.slice(from, to), nextCursor: to < conversations ? String(to) : null, totalCount: conversations } });
});
await page.goto(`${facts.url}/chat`);
const list = page.getByRole("region", { name: "Conversations" });
await list.waitFor();
await page.waitForFunction((list) => {
  list.scrollTop = list.scrollHeight;
  return list.textContent.includes("Conversation 1050");
}, await list.elementHandle());
asked = [];
renamed = true;
rename.open();
await page.waitForFunction((list) => {
  list.scrollTop = 0;
  return list.querySelector("[aria-posinset='1']")?.textContent.includes("The new title");
}, await list.elementHandle());
assert.deepEqual([...new Set(asked)], [0], `the app requested conversations starting at ${asked}`);
assert.equal(await list.locator("li").first().getAttribute("aria-setsize"), String(conversations));
await leave();

// The last message has no answer yet. The page looks for its run once, and then polls the history until it contains the
// answer.
let histories = 0;
const said = (role, content) => ({ role, content, timestamp: new Date().toISOString(), index: 0 });
await page.route("**/v1/conversations/*/history", async (route) => {
  histories++;
  await route.fulfill({ json: { messages: [said("user", "How far is it?"), ...(histories > 4 ? [said("assistant", "Two hours.")] : [])] } });
});
await page.clock.install();
await page.goto(`${facts.url}/chat/conv_00000000000000aa`);
const notice = page.getByText("There is no answer yet.");
await notice.waitFor();
await page.clock.runFor(3_000);
await page.clock.runFor(3_000);
await page.getByText("Two hours.").waitFor();
assert.equal(await notice.count(), 0);
const before = histories;
await page.clock.runFor(20_000);
await page.getByText("Two hours.").waitFor();
assert.equal(histories, before, "a history that contains the answer is not requested again");
assert.deepEqual(problems, [], "the errors that the page reported");
await page.unrouteAll({ behavior: "ignoreErrors" });
await context.close();
