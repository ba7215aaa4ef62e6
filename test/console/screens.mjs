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

const menu = (name) => async (page) => {
  await page.getByRole("button", { name }).and(page.locator(":visible")).first().click();
  await page.getByRole("menu").waitFor();
};
const dialogOf = (name, item) => async (page) => {
  await menu(name)(page);
  await page.getByRole("menuitem", { name: item }).click();
  await page.getByRole("dialog").waitFor();
};
const press = (name, words) => async (page) => {
  await page.getByRole("button", { name, exact: true }).and(page.locator(":visible")).first().click();
  await (words ? page.getByText(words).first() : page.getByRole("dialog")).waitFor();
};
const tab = (name, words) => async (page) => {
  await page.getByRole("tab", { name }).click();
  await page.getByRole("tabpanel").getByText(words).and(page.locator(":visible")).first().waitFor();
};
const listed = (then) => async (page, small) => {
  if (small) await page.getByRole("button", { name: "Conversations" }).click();
  await then(page);
};

// What opens on a screen: its menus, its dialogs, and its tabs. only says that there is no such thing at the
// other width.
const opened = [
  ["menu of the workspace", "/apps", menu(/^Workspace /)],
  ["menu of the account", "/apps", menu(/^Account of/)],
  ["menu of the other screens", "/apps", menu("More"), { only: "375" }],
  ["menu of an app", "/apps", menu(`More for ${facts.app}`)],
  ["question before an uninstall", "/apps", dialogOf(`More for ${facts.app}`, "Uninstall…")],
  ["install, package", "/apps?install=package"],
  ["install, address", "/apps?install=url"],
  ["install, file", "/apps?install=file"],
  ["install, paste", "/apps?install=config"],
  ["install, path", "/apps?install=path"],
  ["tools of an app", `/apps/${facts.app}`, tab(/Tools/, "greet")],
  ["log of an app", `/apps/${facts.app}`, tab("Logs", "Follow")],
  ["settings of an app", `/apps/${facts.app}`, tab("Settings", "Nothing to set")],
  ["menu of a conversation", "/chat", listed(menu(/^More for The budget/))],
  ["new title of a conversation", "/chat", listed(dialogOf(/^More for The budget/, "Rename…"))],
  ["question before a deletion", "/chat", listed(dialogOf(/^More for The budget/, "Delete…"))],
  ["audit trail", "/activity", tab("Audit trail", "Nothing is recorded")],
  ["usage by person", "/usage", tab("By person", "Owner")],
  ["usage by day", "/usage", tab("By day", /20\d\d/)],
  ["new member", "/people", press("Add")],
  ["workspaces", "/people", tab("Workspaces", "default")],
  ["everybody", "/people", tab("Everybody", "Owner")],
  ["new key", "/connect", press("New key")],
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
    // Each in both themes and at both widths, but not in each theme at each width: that takes twice the time.
    const shown = (size === "1440") === (colorScheme === "light") ? opened : [];
    for (const [name, path, open, { only = size } = {}] of shown) {
      if (only !== size) continue;
      const where = `${name} at ${size} px, ${colorScheme}`;
      await page.goto(facts.url + path);
      try {
        await open?.(page, size === "375");
        await page.locator("[role=menu], dialog[open], [role=tabpanel]").and(page.locator(":visible")).first().waitFor();
      } catch (error) {
        throw new Error(`${where}: ${error.message}`);
      }
      await settled(page);
      for (const v of await violationsOn(page)) found.push(`${where}: ${v.id}: ${v.nodes.join(" | ")}`);
    }
    found.push(...problems.map((problem) => `${size} px, ${colorScheme}: ${problem}`));
    await context.close();
  }
}
assert.ok(found.length === 0, `axe-core, widths and complaints:\n${found.join("\n")}`);
