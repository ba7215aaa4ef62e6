// Uses the console with only the keyboard. The focus is always visible.
import { assert, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const press = (key) => page.keyboard.press(key);
const type = (text) => page.keyboard.type(text);

// focus describes the focused element: its name, whether the focus is visible, and the title of the dialog that
// contains it.
const focus = () => page.evaluate(() => {
  const at = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const label = at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent;
  const ring = at.matches("textarea") ? getComputedStyle(at.closest("form > div")).boxShadow.includes("0px 0px 0px 3px") : false;
  const dialog = at.closest("dialog");
  return {
    page: at === document.body || at === document.documentElement, // Tab goes here after the last element of a dialog
    name: label.trim().replaceAll(/\s+/g, " ").slice(0, 80), html: at.outerHTML.slice(0, 160), role: at.getAttribute("role"),
    seen: ring || (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2),
    dialog: dialog && document.getElementById(dialog.getAttribute("aria-labelledby")).textContent,
  };
});

// shown returns the focused element as focus does, and fails if the focus is not visible.
async function shown() {
  const at = await focus();
  if (!at.page) assert.ok(at.seen, `the focus on ${at.html} is not visible`);
  return at;
}

// reach presses a key until the element with this name is focused.
async function reach(name, key = "Tab") {
  const fits = (at) => (name instanceof RegExp ? name.test(at.name) : at.name === name);
  const stops = [];
  for (let i = 0; i < 90; i++) {
    await press(key);
    const at = await shown();
    if (fits(at)) return at;
    stops.push(at.name);
  }
  throw new Error(`${key} does not reach ${name}: it stops at ${stops.join(", ")}`);
}

// focused waits until the element with this name is focused.
async function focused(name) {
  await page.waitForFunction((name) => {
    const at = document.activeElement;
    return (at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent).trim().replaceAll(/\s+/g, " ") === name;
  }, name).catch(async () => { throw new Error(`the focus is on ${(await focus()).html}, not on ${name}`); });
  await shown();
}

// trapped presses Tab in a dialog in both directions and checks that the focus never leaves the dialog.
async function trapped(title) {
  await page.getByRole("dialog", { name: title }).waitFor();
  for (const key of ["Tab", "Shift+Tab"]) {
    for (let i = 0; i < 14; i++) {
      await press(key);
      const at = await shown();
      assert.ok(at.page || at.dialog === title, `${key} goes from ${title} to ${at.html}`);
    }
  }
}

// dismissed closes a dialog or menu with Escape and checks that the focus returns to the element that had it before.
async function dismissed(role, before) {
  await press("Escape");
  await page.getByRole(role).waitFor({ state: "detached" });
  await focused(before);
}

// opened waits until a menu has the focus. It gets the focus after it appears.
const opened = () => page.waitForFunction(() => document.activeElement.getAttribute("role") === "menuitem");

// Log in, and skip the navigation.
await page.goto(facts.url + "/");
await page.getByLabel("API key").waitFor();
await focused("API key*");
await type(facts.key);
await press("Enter");
await page.getByRole("link", { name: "Apps" }).waitFor();
await page.goto(facts.url + "/apps");
await page.getByRole("button", { name: "Install app" }).first().waitFor();
await reach("Skip to content");
await press("Enter");
await page.waitForFunction(() => document.activeElement.id === "main");
await reach("Install app");

// The install dialog keeps the focus inside, and returns it when the dialog closes.
await press("Enter");
await trapped("Install an app");
await dismissed("dialog", "Install app");
await press("Enter");
await page.getByRole("tab", { name: "Registry" }).waitFor();
await reach("Registry");
await press("End");
await focused("Server path");
await reach("Path on the server*");
await type(facts.bundle);
await press("Enter");
await trapped(`Settings for ${facts.bundle.split("/").at(-1)}`);
await reach("Greeting*");
await type("hello");
await press("Enter");
await page.getByRole("heading", { name: /^greeter/ }).waitFor();
await page.waitForFunction(() => document.activeElement.id === "main");
await reach("Overview");
await press("ArrowRight");
await focused("Tools1");

// Menus: their first item, Escape, and a dialog that a menu item opens.
await reach("More actions for greeter", "Shift+Tab");
await press("Enter");
await opened();
await shown();
await dismissed("menu", "More actions for greeter");
await press("Enter");
await opened();
await press("End");
await focused("Uninstall…");
await press("Enter");
await trapped("Uninstall greeter?");
await dismissed("dialog", "More actions for greeter");

// Chat: the message field is focused immediately. The model's call needs approval.
await reach("Chat");
await press("Enter");
await focused("Message");
await type("greet me");
await press("Enter");
const thread = page.getByRole("region", { name: "Conversation", exact: true });
await thread.locator("summary", { hasText: "greeter" }).waitFor();
await reach(/^Approvals/);
await press("Enter");
await page.getByRole("heading", { name: "greeter__greet" }).waitFor();
await reach("Allow once");
await press("Enter");
await page.getByText("Nothing is waiting for approval").waitFor();
await reach("Chat");
await press("Enter");
await focused("Message");
await page.getByRole("link", { name: /^A greeting/ }).waitFor();
await reach(/^A greeting/);
await press("Enter");
await thread.getByText("You are greeted.").waitFor();

// Rename a conversation.
await reach("More actions for A greeting", "Shift+Tab");
await press("Enter");
await focused("Rename…");
await press("Enter");
const selected = ({ selectionStart, selectionEnd, value }) => value !== "" && selectionStart === 0 && selectionEnd === value.length;
assert.ok(await page.getByRole("dialog").getByLabel("Title").evaluate(selected), "the old title is selected");
await trapped("Rename the conversation");
await dismissed("dialog", "More actions for A greeting");

// Log out.
await reach(/^Account of/);
await press("Enter");
await opened();
await dismissed("menu", (await page.getByRole("button", { name: /^Account of/ }).first().textContent()).trim().replaceAll(/\s+/g, " "));
await press("Enter");
await opened();
await press("End");
await focused("Log out");
await press("Enter");
await page.getByLabel("API key").waitFor();
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
