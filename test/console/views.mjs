// Tests the views of published apps. Each view renders something after its tool has run, responds to a click, and
// reports no errors.
import { assert, facts, open, picture } from "./browser.mjs";

// changes runs act and waits until the part of the view that read returns has changed. It returns the value from
// before the change.
async function changes(part, read, act) {
  const before = await part.evaluate(read);
  await act();
  for (let i = 0; (await part.evaluate(read)) === before; i++) {
    if (i === 1_800) throw new Error(`the value is still ${before}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return before;
}

const text = (element) => element.textContent;

// drag clicks a slider near its end, as a person would.
async function drag(slider) {
  await slider.waitFor();
  const { width, height } = await slider.boundingBox();
  await slider.click({ position: { x: width * 0.9, y: height / 2 } });
}

// For each view, an action of a person and its effect: a result of the app's tool, or a change in the view.
const clicks = {
  "basic-react": async (page, view) => {
    await view.getByRole("button", { name: "Get Server Time" }).first().click();
    await page.getByText("called get-time ✓").waitFor();
  },
  "basic-vanillajs": (page, view) => clicks["basic-react"](page, view),
  "budget-allocator": async (_, view) => {
    await view.locator(".slider").first().waitFor();
    await changes(view.locator("#status-bar"), text, () => drag(view.locator(".slider").first()));
  },
  "cohort-heatmap": async (page, view) => {
    await view.getByRole("combobox").first().selectOption({ index: 1 });
    await page.getByText("called get-cohort-data ✓").waitFor();
  },
  "customer-segmentation": async (_, view) => {
    await changes(view.locator("#legend"), (e) => e.innerHTML, () => view.locator(".legend-item").first().click());
  },
  "scenario-modeler": async (_, view) => {
    const value = view.locator(".slider-value").first();
    const before = await changes(value, text, () => drag(view.locator(".slider-input").first()));
    await view.getByRole("button", { name: "Reset" }).click();
    await value.getByText(before, { exact: true }).waitFor();
  },
};

// answersInAnotherOrder delays the result of a view's first call until the second call has returned.
async function answersInAnotherOrder(page) {
  let calls = 0, release;
  const second = new Promise((resolve) => { release = resolve; });
  await page.route("**/v1/tools/call", async (route) => {
    const call = ++calls; // the page itself makes the first call
    if (call === 2) await second;
    await route.fulfill({ response: await route.fetch() });
    if (call === 3) release();
  });
}

const { context, page, problems } = await open();
const failures = [];
for (const tool of facts.tools) {
  const app = tool.split("__")[0];
  if (app === "cohort-heatmap") await answersInAnotherOrder(page); // this view calls its tool when it appears and after each choice
  await page.goto(`${facts.url}/tools?tool=${tool}`);
  await page.getByRole("button", { name: "Run tool" }).click();
  const view = page.frameLocator("iframe").frameLocator("iframe");
  try {
    await view.getByText(/\w{2}/).first().waitFor();
    if (facts.pictures) await page.waitForTimeout(2_000); // wait until the animations have ended
    await picture(page, `view-${app}-1440`);
    await clicks[app](page, view);
    const shown = await view.locator("body").evaluate((body) => ({ text: body.innerText.trim().length, height: body.scrollHeight }));
    if (shown.text < 10 || shown.height < 40) failures.push(`${tool}: the view shows only ${JSON.stringify(shown)}`);
    await page.unroute("**/v1/tools/call");
  } catch (error) {
    failures.push(`${tool}: ${error.message.split("\n").slice(0, 4).join(" ")}; the page shows ${(await page.locator("main").innerText()).slice(-400)}`);
  }
}
assert.deepEqual(failures, []);
const ours = problems.filter((p) => !/favicon|Autofocus|DevTools/.test(p));
assert.deepEqual(ours, [], "the errors that the pages reported");
await context.close();
