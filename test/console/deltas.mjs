// An answer arrives in 10,000 deltas. Finished parts are not rendered again, and nothing blocks the page.
import { assert, facts, open } from "./browser.mjs";

const longest = 100;

const { context, page, problems } = await open();
await page.addInitScript(() => {
  globalThis.tasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach((e) => globalThis.tasks.push({ at: Math.round(e.startTime), ms: Math.round(e.duration) }))).observe({ type: "longtask", buffered: true });
});
await page.goto(facts.url + "/chat");
const message = page.getByLabel("Message", { exact: true });
await message.waitFor();
await page.evaluate(() => {
  globalThis.tasks.length = 0;
  // Once there are ten blocks, the first block is finished. From then on, its nodes must not change.
  globalThis.settled = { changes: 0, blocks: 0, frames: 0 };
  const find = new MutationObserver(() => {
    globalThis.settled.frames++;
    const answer = document.querySelector("article[aria-busy]");
    if (!answer || answer.querySelectorAll("p").length < 10 || globalThis.settled.first) return;
    const first = answer.querySelector("p");
    globalThis.settled.first = first;
    new MutationObserver((records) => { globalThis.settled.changes += records.length; }).observe(first, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  find.observe(document.body, { childList: true, subtree: true, characterData: true });
});
const began = Date.now();
await message.fill("a long answer");
await message.press("Enter");
const end = page.locator("article").getByText("The very end."); // within the article, because a live region repeats it
await end.waitFor({ state: "attached" });
await page.getByRole("button", { name: "Fork from here" }).waitFor({ state: "attached" });
const took = Date.now() - began;
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const { tasks, changes, frames, watched, items } = await page.evaluate(() => ({
  tasks: globalThis.tasks, changes: globalThis.settled.changes, frames: globalThis.settled.frames, watched: Boolean(globalThis.settled.first),
  items: [document.querySelectorAll("article li").length, document.querySelectorAll("article tr").length, document.querySelectorAll("article pre").length],
}));
const worst = Math.max(0, ...tasks.map((t) => t.ms));
console.log(`10,000 deltas in ${took} ms, ${frames} renderings; ${tasks.length} long tasks, the longest ${worst} ms: ${JSON.stringify(tasks)}; ${items} items, rows, blocks of code`);
assert.ok(watched, "the answer was not rendered while it arrived");
assert.equal(changes, 0, "a finished block was rendered again");
assert.ok(items[0] > 200 && items[1] > 290 && items[2] === 1, `items, rows and blocks of code: ${items}`);
if (facts.strict) assert.ok(worst <= longest, `a task took ${worst} ms, but the limit is ${longest} ms`);
assert.deepEqual(problems, []);
await context.close();
