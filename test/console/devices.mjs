// Tests the console on a touch screen and on a page of medium width, for a person who logs in with a token.
import { accessible, assert, eventually, excess, facts, launch, narrow, open, settled } from "./browser.mjs";

const browser = await launch();

async function visitor(options) {
  const at = await open({ browser, ...options });
  const { page } = at;
  await page.goto(`${facts.url}/chat`);
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.getByRole("button", { name: "Continue with your organization" }).count(), 0, "the page offers a login that cannot work");
  await page.getByLabel("Token").fill(facts.token);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /^Account of/ }).waitFor();
  return { ...at, message: page.getByLabel("Message", { exact: true }), thread: page.getByRole("region", { name: "Conversation", exact: true }) };
}

const list = (page) => page.locator("aside[data-open=true]");
const openList = async (page) => {
  await page.getByRole("button", { name: "Conversations", exact: true }).click();
  await list(page).waitFor();
};
const focusedButton = (page, name) => eventually(`the focus is on ${name}`, () => page.getByRole("button", { name, exact: true }).evaluate((at) => at === document.activeElement));

// On a touch screen, Enter starts a new line, and no field causes the browser to zoom in.
const phone = await visitor({ viewport: narrow, hasTouch: true, isMobile: true });
await phone.message.fill("one");
await phone.message.press("Enter");
await phone.page.keyboard.type("two");
assert.equal(await phone.message.inputValue(), "one\ntwo");
await phone.page.getByRole("button", { name: "Send", exact: true }).tap();
await phone.thread.getByText("Seen.").waitFor();

// The button that copies code is visible without a pointer.
await phone.message.fill("some code");
await phone.page.getByRole("button", { name: "Send", exact: true }).tap();
const code = phone.thread.getByRole("region", { name: "Code" });
await code.waitFor();
await eventually("the button is visible", () => code.locator("xpath=..").getByRole("button", { name: "Copy" }).evaluate((at) => getComputedStyle(at).opacity === "1"));
for (const path of ["/chat", "/tools?tool=sample__echo", "/connect", "/apps?install=package"]) {
  await phone.page.goto(facts.url + path);
  await phone.page.locator("textarea, input, select").and(phone.page.locator(":visible")).first().waitFor();
  await settled(phone.page);
  const small = await phone.page.locator("textarea, select, input:not([type=checkbox], [type=file])").evaluateAll((all) => all.filter((at) => parseFloat(getComputedStyle(at).fontSize) < 16).map((at) => at.outerHTML.slice(0, 120)));
  assert.deepEqual(small, [], `${path}: fields with small text`);
  assert.equal(await excess(phone.page), 0, `${path} is wider than the screen`);
}

// The list of conversations covers the chat. A button closes the list.
await phone.page.goto(`${facts.url}/chat`);
await openList(phone.page);
await list(phone.page).getByText("A title").first().waitFor();
await accessible(phone.page, "the list of conversations on a phone");
await phone.page.getByRole("button", { name: "Close the list" }).tap();
await list(phone.page).waitFor({ state: "detached" });

// On a page of medium width, the list has a button above the chat. Escape closes it.
const { page, message, thread, problems } = await visitor({ viewport: { width: 1024, height: 768 } });
await openList(page);
await focusedButton(page, "Close the list");
await page.keyboard.press("Escape");
await list(page).waitFor({ state: "detached" });
await focusedButton(page, "Conversations");
await openList(page);
await list(page).getByRole("link", { name: /A title/ }).click();
await thread.getByText("Seen.").waitFor();
await list(page).waitFor({ state: "detached" });

// A dialog opens with the cursor in its first field.
await page.keyboard.press("Control+k");
await page.getByRole("dialog").waitFor();
await page.keyboard.type("usage");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
await page.goBack();
await thread.getByText("Seen.").waitFor();

// The browser tab is named after the conversation, or elsewhere after the screen.
const named = (title) => page.waitForFunction((title) => document.title === title, title);
await named("A title · Ropewalk");
await page.getByRole("button", { name: "Start a new chat" }).click();
await named("Chat · Ropewalk");
await page.goBack();
await named("A title · Ropewalk");
await page.getByRole("link", { name: "Usage" }).click();
await named("Usage · Ropewalk");
await page.getByText("in 1 conversation", { exact: true }).waitFor();

// The reason for a failure is shown only once.
await page.goto(`${facts.url}/chat`);
await message.fill("break off");
await message.press("Enter");
await thread.getByRole("alert").getByText(/broke/).waitFor();
await thread.getByRole("button", { name: "Fork from here" }).waitFor();
assert.equal(await thread.getByText(/broke/).count(), 1, "the reason is shown twice");

// A conversation that does not exist has no message field.
await page.goto(`${facts.url}/chat/conv_00000000000000aa`);
await page.getByText("Conversation not found").waitFor();
await message.waitFor({ state: "detached" });

// A call from the list of tools that needs approval can be approved there.
await page.goto(`${facts.url}/tools?tool=sample__echo`);
await page.getByLabel(/^text/).fill("hello");
await page.getByRole("button", { name: "Run tool" }).click();
await page.getByText("Waiting for approval").waitFor();
await page.getByRole("button", { name: "Allow once" }).click();
await page.getByRole("heading", { name: "Result" }).waitFor();
await page.getByText("Waiting for approval").waitFor({ state: "detached" });
assert.deepEqual([...problems, ...phone.problems], [], "the errors that the page reported");
await browser.close();
