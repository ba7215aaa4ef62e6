// Views that attack the page around them: none reads, sends, or goes anywhere.
import { assert, facts, open } from "./browser.mjs";

const { context, page } = await open();
await page.goto(facts.url + "/tools");
await page.evaluate(() => localStorage.setItem("secret", "of the console"));
const failures = [];
let told = 0;
for (const attack of facts.attacks) {
  await page.goto(`${facts.url}/tools?tool=hostile__${attack}`);
  await page.getByRole("button", { name: "Run tool" }).click();
  const view = page.frameLocator("iframe").frameLocator("iframe");
  // A view that was sent elsewhere has no outcome: that is looked for in the requests.
  const outcome = await view.locator("#outcome[data-over]").textContent({ timeout: 10_000 }).catch(() => "gone");
  if (outcome !== "gone") told++;
  if (/READ|SENT/.test(outcome)) failures.push(`${attack}: ${outcome}`);
  if (!page.url().startsWith(facts.url)) failures.push(`${attack}: the page went to ${page.url()}`);
  if (context.pages().length > 1) failures.push(`${attack}: it opened a window`);
  for (const frame of page.frames()) if (frame.url().startsWith(facts.canary)) failures.push(`${attack}: a frame went to ${frame.url()}`);
}
assert.deepEqual(failures, []);
assert.ok(told >= facts.attacks.length - 6, `only ${told} views told an outcome: the attacks were not really made`);
await context.close();
