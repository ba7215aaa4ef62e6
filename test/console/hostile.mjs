// Views try to attack the page that contains them. None may read data, send data or navigate to another page.
import { assert, eventually, facts, open } from "./browser.mjs";

const { context, page } = await open();
// The secrets that a view must not be able to read or reach.
await context.addInitScript(() => {
  if (top !== globalThis || !/^(\/w\/[^/]+)?\/tools/.test(location.pathname)) return;
  localStorage.setItem("secret", "of the console");
  globalThis.name = "the name of the page";
  const channel = new BroadcastChannel("console");
  channel.onmessage = ({ data }) => { globalThis.heard ||= data === "of a view"; };
  setInterval(() => channel.postMessage("of the console"), 100);
});
const failures = [];
let reported = 0;
let windows = 0;
context.on("page", () => windows++);
page.on("download", (download) => failures.push(`a download began: ${download.suggestedFilename()}`));
page.on("dialog", (dialog) => {
  failures.push(`a dialog was shown: ${dialog.message()}`);
  void dialog.dismiss();
});

// outcomeOf waits for a view to report the outcome of its attack, or for the message that it was stopped. A view that
// tries to navigate away, which the browser blocks, reports nothing. The recorded requests then show what it sent.
async function outcomeOf(view) {
  const ends = [view.locator("#outcome[data-over]"), page.getByText("was stopped because it sent too many messages")];
  for (const until = Date.now() + 30_000; Date.now() < until; await new Promise((resolve) => setTimeout(resolve, 50))) {
    for (const end of ends) if (await end.count().catch(() => 0)) return end.textContent({ timeout: 8_000 }).catch(() => "gone");
    const shown = page.frames().find((frame) => frame.parentFrame()?.parentFrame() === page.mainFrame());
    if (shown?.url().startsWith("chrome-error:")) return "gone";
  }
  return "gone";
}

async function attempt(attack) {
  await page.evaluate((to) => history.pushState(null, "", to), `/tools?tool=hostile__${attack}`);
  await page.getByRole("heading", { name: attack, exact: true }).waitFor();
  await eventually(`${attack}: the previous view is gone`, async () => (await page.locator("iframe").count()) === 0);
  await page.getByRole("button", { name: "Run tool" }).click();
  const view = page.frameLocator("iframe").frameLocator("iframe");
  if (attack.startsWith("flood")) {
    await page.getByText("was stopped because it sent too many messages").waitFor();
    await eventually(`${attack}: the view is gone`, async () => (await page.locator("iframe").count()) === 0);
    reported++;
    return;
  }
  const outcome = await outcomeOf(view);
  if (outcome !== "gone") reported++;
  if (/READ|SENT/.test(outcome)) failures.push(`${attack}: ${outcome}`);
  if (!page.url().startsWith(facts.url)) failures.push(`${attack}: the page went to ${page.url()}`);
  for (const frame of page.frames()) if (frame.url().startsWith(facts.canary)) failures.push(`${attack}: a frame went to ${frame.url()}`);
  // The page around the view still works.
  assert.equal(await page.title(), "Tools · Ropewalk", `${attack}: the title`);
  const { heard, text } = await page.evaluate(() => ({ heard: globalThis.heard, text: document.body.innerText }));
  if (heard) failures.push(`${attack}: the page received a message over a channel`);
  if (text.includes("forged")) failures.push(`${attack}: the page shows a forged answer`);
  const tall = await page.locator("iframe").first().evaluate((frame) => frame.clientHeight);
  if (tall > 800) failures.push(`${attack}: the frame grew to ${tall} px`);
  if (windows > 0) failures.push(`${attack}: the view opened ${windows} windows`);
  windows = 0;
}

await page.goto(`${facts.url}/tools`);
await page.getByRole("link", { name: "Tools" }).waitFor();
for (const attack of facts.attacks) await attempt(attack);
assert.deepEqual(failures, []);
assert.ok(reported >= facts.attacks.length - 12, `only ${reported} of ${facts.attacks.length} views reported an outcome, so the attacks did not really run`);
console.log(`${facts.attacks.length} attacks, ${reported} reported an outcome`);
await context.close();
