// Renders answers of 200 KB that arrive in 1,000 deltas. If facts.strict is set, measures the longest task on a
// processor slowed down by a factor of four.
import { assert, facts, open } from "./browser.mjs";

const longest = 50;
const slower = facts.strict ? 4 : 1; // the factor that slows the processor down; only strict runs check the times
const rounds = facts.strict ? 5 : 1; // an odd number, so that the median is a measured value

const { context, page, problems } = await open();
await page.addInitScript(() => {
  globalThis.tasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach((e) => globalThis.tasks.push(Math.round(e.duration)))).observe({ type: "longtask" });
});
const session = await context.newCDPSession(page);
// rendered waits until the whole answer is rendered. Text that does not fit into one frame is first shown as unrendered
// Markdown.
const rendered = () => page.waitForFunction(() => document.querySelectorAll("article code").length === 999 && !document.querySelector("article").textContent.includes("`"));
const worst = [];
for (let round = 0; round < rounds; round++) {
  await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await page.goto(facts.url + "/chat");
  const message = page.getByLabel("Message", { exact: true });
  await message.waitFor();
  await message.fill("a large answer");
  await page.waitForFunction(() => true); // installs Playwright's own script, because that task does not exist for users
  await session.send("Emulation.setCPUThrottlingRate", { rate: slower });
  await page.evaluate(() => { globalThis.tasks.length = 0; });
  await message.press("Enter");
  // Do not use Playwright's locators here: they search the whole text repeatedly, in tasks that do not exist for users.
  await page.waitForFunction(() => document.querySelector('[aria-label="Fork from here"]'), undefined, { polling: 200 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  worst.push(await page.evaluate(() => Math.max(0, ...globalThis.tasks)));
  await page.locator("article").getByText("The very end.").waitFor({ state: "attached" });
  await rendered();
}
await page.reload();
await rendered();
worst.sort((a, b) => a - b);
const median = worst[(worst.length - 1) / 2];
console.log(`1,000 deltas of a 200 KB answer on a processor slowed down ${slower} times: the longest task takes ${median} ms (${worst.join(", ")})`);
if (facts.strict) assert.ok(median <= longest, `the longest task took ${median} ms; the limit is ${longest} ms`);
assert.deepEqual(problems, []);
await context.close();
