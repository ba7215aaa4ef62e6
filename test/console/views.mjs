// The views of published apps: each renders something after its tool ran, and complains about nothing.
import { assert, facts, open, picture } from "./browser.mjs";

const { context, page, problems } = await open();
const failures = [];
for (const tool of facts.tools) {
  await page.goto(`${facts.url}/tools?tool=${tool}`);
  await page.getByRole("button", { name: "Run tool" }).click();
  const view = page.frameLocator("iframe").frameLocator("iframe");
  try {
    await view.getByText(/\w{2}/).first().waitFor();
    await page.waitForTimeout(500);
    const shown = await view.locator("body").evaluate((body) => ({ text: body.innerText.trim().length, height: body.scrollHeight }));
    if (shown.text < 10 || shown.height < 40) failures.push(`${tool}: it shows ${JSON.stringify(shown)}`);
    const time = view.getByRole("button", { name: "Get Server Time" });
    if (await time.count()) {
      await time.first().click();
      await page.getByText("called get-time ✓").waitFor();
    }
    await picture(page, `view-${tool.split("__")[0]}-1440`);
  } catch (error) {
    failures.push(`${tool}: ${error.message.split("\n")[0]}; the page says ${(await page.locator("main").innerText()).slice(-400)}`);
  }
}
assert.deepEqual(failures, []);
const ours = problems.filter((p) => !/favicon|Autofocus|DevTools/.test(p));
assert.deepEqual(ours, [], "what the pages complained about");
await context.close();
