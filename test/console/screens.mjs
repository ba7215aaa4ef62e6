// Opens every screen in both themes and at two widths, and checks that it is accessible. At these and other widths,
// nothing may be wider than the page.
import { assert, excess, facts, launch, narrow, open, settled, violationsOn, wide } from "./browser.mjs";

const screens = [
  ["chat", "/chat", "What would you like to do?"],
  ["conversation", `/chat/${facts.conversation}`, "Here is"],
  ["apps", "/apps", "Apps"],
  ["install", "/apps?install=registry", "Install an app"],
  ["app", `/apps/${facts.app}`, "Overview"],
  ["tools", `/tools?tool=${facts.tool}`, "Run tool"],
  ["activity", "/activity", "Activity"],
  ["usage", "/usage", "Tokens per day"],
  ["accounts", "/accounts", "No app needs an account"],
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
  if (small && (await page.locator("aside[data-open=true]").count()) === 0) await page.getByRole("button", { name: "Conversations" }).click();
  await then(page);
};

const selectAll = async (page) => {
  await page.getByRole("button", { name: "Select conversations" }).click();
  await page.getByRole("button", { name: "Select all" }).click();
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog").waitFor();
};

// The menus, dialogs and tabs of the screens. If an entry exists at only one width, `only` names that width.
const opened = [
  ["menu of the workspace", "/apps", menu(/^Workspace /)],
  ["menu of the account", "/apps", menu(/^Account of/)],
  ["menu of the other screens", "/apps", menu("More"), { only: "375" }],
  ["menu of an app", "/apps", menu(`More actions for ${facts.app}`)],
  ["question before an uninstall", "/apps", dialogOf(`More actions for ${facts.app}`, "Uninstall…")],
  ["install, package", "/apps?install=package"],
  ["install, address", "/apps?install=url"],
  ["install, file", "/apps?install=file"],
  ["install, paste", "/apps?install=config"],
  ["install, path", "/apps?install=path"],
  ["tools of an app", `/apps/${facts.app}`, tab(/Tools/, "greet")],
  ["log of an app", `/apps/${facts.app}`, tab("Logs", "Follow")],
  ["settings of an app", `/apps/${facts.app}`, tab("Settings", "No settings")],
  ["apps of a chat", "/chat", press("Apps in this chat: 1 of 1")],
  ["menu of a conversation", "/chat", listed(menu(/^More actions for The budget/))],
  ["new title of a conversation", "/chat", listed(dialogOf(/^More actions for The budget/, "Rename…"))],
  ["question before a deletion", "/chat", listed(dialogOf(/^More actions for The budget/, "Delete…"))],
  ["audit trail", "/activity", tab("Audit trail", "Nothing is recorded")],
  ["usage by person", "/usage", tab("By person", "Owner")],
  ["usage by day", "/usage", tab("By day", /20\d\d/)],
  ["shortcuts", "/usage", dialogOf(/^Account of/, "Keyboard shortcuts")],
  ["instructions of the workspace", "/usage", dialogOf(/^Workspace /, "Instructions for models…")],
  ["selected conversations", "/chat", listed(selectAll)],
  ["new member", "/people", press("Add")],
  ["workspaces", "/people", tab("Workspaces", "default")],
  ["everyone", "/people", tab("Everyone", "Owner")],
  ["new key", "/connect", press("New key")],
];

const found = [];

// look records the violations on the page. The themes differ only in colors, so the first theme is checked with all
// rules and the second with the color rules only.
async function look(page, name, size, themes) {
  for (const [i, colorScheme] of themes.entries()) {
    await page.emulateMedia({ colorScheme });
    for (const v of await violationsOn(page, i === 0 ? undefined : ["color-contrast", "link-in-text-block"])) found.push(`${name} at ${size} px, ${colorScheme}: ${v.id}: ${v.nodes.join(" | ")}`);
  }
  await page.emulateMedia({ colorScheme: themes[0] });
}

// visit checks everything at one width. At the other widths, it checks only that nothing is wider than the page.
async function visit(browser, size, viewport, themes, widths) {
  const { context, page, problems } = await open({ browser, viewport, colorScheme: themes[0] });
  for (const [name, path, words] of screens) {
    await page.goto(facts.url + path);
    await page.getByText(words, { exact: false }).and(page.locator(":visible")).first().waitFor().catch((error) => { throw new Error(`${name} at ${size} px: ${error.message}`); });
    await settled(page);
    await look(page, name, size, themes);
    for (const width of [...widths, viewport.width]) {
      await page.setViewportSize({ ...viewport, width });
      const over = await excess(page);
      if (over > 0) found.push(`${name} at ${width} px: the page is ${over} px too wide`);
    }
  }
  for (const [name, path, show, { only = size } = {}] of opened) {
    if (only !== size) continue;
    // Escape closes the menu or dialog that an earlier check opened on this screen.
    if (page.url().endsWith(path)) await page.keyboard.press("Escape");
    else await page.goto(facts.url + path);
    try {
      await show?.(page, size === "375");
      await page.locator("[role=menu], dialog[open], [role=tabpanel]").and(page.locator(":visible")).first().waitFor();
    } catch (error) {
      throw new Error(`${name} at ${size} px: ${error.message}`);
    }
    await settled(page);
    await look(page, name, size, themes);
  }
  found.push(...problems.map((problem) => `${size} px: ${problem}`));
  await context.close();
}

const browser = await launch();
await Promise.all([visit(browser, "1440", wide, ["light", "dark"], [768, 1280]), visit(browser, "375", narrow, ["dark", "light"], [360])]);
await browser.close();
assert.ok(found.length === 0, `violations, widths and errors:\n${found.join("\n")}`);
