// Every screen in both themes and at both widths: shown, accessible, nothing wider than the page.
import { assert, facts, narrow, open, settled, violationsOn, wide } from "./browser.mjs";

const screens = [
  ["chat", "/chat", "What shall we do?"],
  ["conversation", `/chat/${facts.conversation}`, "Here is"],
  ["apps", "/apps", "Apps"],
  ["install", "/apps?install=registry", "Install an app"],
  ["app", `/apps/${facts.app}`, "Overview"],
  ["tools", `/tools?tool=${facts.tool}`, "Run tool"],
  ["activity", "/activity", "Activity"],
  ["usage", "/usage", "Tokens per day"],
  ["people", "/people", "Members of"],
  ["system", "/system", "Skills"],
  ["connect", "/connect", "Claude Code"],
  ...(facts.more ?? []),
];

const found = [];
for (const [size, viewport] of [["1440", wide], ["375", narrow]]) {
  for (const colorScheme of ["light", "dark"]) {
    const { context, page, problems } = await open({ viewport, colorScheme });
    for (const [name, path, words] of screens) {
      const where = `${name} at ${size} px, ${colorScheme}`;
      await page.goto(facts.url + path);
      await page.getByText(words, { exact: false }).and(page.locator(":visible")).first().waitFor().catch((error) => { throw new Error(`${where}: ${error.message}`); });
      await settled(page);
      await page.waitForTimeout(300); // the end of its animations
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) found.push(`${where}: the page is ${over} px too wide`);
      for (const v of await violationsOn(page)) found.push(`${where}: ${v.id}: ${v.nodes.join(" | ")}`);
    }
    found.push(...problems.map((problem) => `${size} px, ${colorScheme}: ${problem}`));
    await context.close();
  }
}
assert.ok(found.length === 0, `axe-core, widths and complaints:\n${found.join("\n")}`);
