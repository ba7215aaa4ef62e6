// Tests the parts of a conversation: formulas, versions of a message, other models, long results, shortcuts,
// notifications, and the deletion of several conversations.
import { accessible, assert, eventually, facts, narrow, open, wide } from "./browser.mjs";

const { context, page, problems } = await open();
await context.grantPermissions(["notifications"]);
const message = page.getByLabel("Message", { exact: true });
const thread = page.getByRole("region", { name: "Conversation", exact: true });
const answers = thread.getByRole("article", { name: "Answer" });
const versions = thread.getByRole("group", { name: "Versions of this message" });
const ended = () => page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
const say = async (text) => {
  await message.fill(text);
  await message.press("Enter");
};

// An edited message becomes a new version. Arrows lead to the previous and the next version, also after a reload.
await page.goto(`${facts.url}/chat`);
await say("the first words");
await answers.getByText("Seen by test.").waitFor();
await page.waitForURL(/conv_/);
await ended();
const first = page.url();
await thread.getByText("the first words").hover();
await thread.getByRole("button", { name: "Edit", exact: true }).click();
const edited = page.getByLabel("Edit the message");
await edited.press("Escape");
await edited.waitFor({ state: "detached" });
await thread.getByRole("button", { name: "Edit", exact: true }).click();
await page.keyboard.type(", and more");
assert.equal(await edited.inputValue(), "the first words, and more");
await edited.fill("other words");
await edited.press("Enter");
await page.waitForURL((url) => url.href !== first && /conv_/.test(url.pathname));
await answers.getByText("Seen by test.").waitFor();
await versions.getByText("2 of 2").waitFor();
await ended();
await accessible(page, "a message of several versions");
await versions.getByRole("button", { name: "Previous version" }).click();
await page.waitForURL(first);
await thread.getByText("the first words").waitFor();
await page.reload();
await versions.getByText("1 of 2").waitFor();
await versions.getByRole("button", { name: "Next version" }).click();
await thread.getByText("other words").waitFor();

// A retry is also a new version. Once the console knows a second model, the retry can use it.
await page.getByRole("combobox", { name: "Model" }).selectOption({ label: "Another model…" });
await page.getByRole("dialog").getByLabel("Model").fill("other");
await page.keyboard.press("Enter");
await page.getByRole("dialog").getByText("Enter the provider, a colon").waitFor();
await page.getByRole("dialog").getByLabel("Model").fill("local:other");
await page.getByRole("button", { name: "Use it" }).click();
await say("more");
await answers.getByText("Seen by other.").waitFor();
await ended();
await page.reload();
await answers.first().hover();
await answers.first().getByRole("button", { name: "Retry with another model" }).click();
await page.getByRole("menuitem", { name: "local:other" }).click();
await versions.getByText("3 of 3").waitFor();
await answers.getByText("Seen by other.").waitFor();
await ended();

// If a failed message is sent again, it becomes a new version, so it does not appear twice.
await say("fail once more");
await thread.getByRole("alert").getByText("It says: not today").waitFor();
await ended();
await thread.getByRole("alert").getByRole("button", { name: "Retry" }).click();
await versions.last().getByText("2 of 2").waitFor();
await thread.getByRole("alert").getByText("It says: not today").waitFor();
await ended();
await eventually("the failed message is shown once", async () => (await thread.getByText("fail once more").count()) === 1);

// Formulas are MathML, and prices are text.
await say("a formula, please");
await answers.last().locator("math").nth(1).waitFor();
assert.equal(await answers.last().locator("math[display=block]").count(), 1);
assert.match(await answers.last().innerText(), /it costs \$5 to \$10\./);
await ended();
await accessible(page, "formulas");

// A tool's long result can be searched.
await say("echo a lot");
await thread.getByText("It was echoed.").waitFor();
await ended();
await thread.locator("summary", { hasText: "sample" }).last().click();
await thread.getByLabel("Search this result").fill("line 42");
await thread.getByText("2 of 200 lines").waitFor();
await thread.getByRole("region", { name: "Matching lines" }).getByText("142: line 142 of the result").waitFor();
await accessible(page, "the search in a result");

// A sent message is shown, even if the person has scrolled up. An empty answer is explained.
await thread.evaluate((box) => box.scrollTo(0, 0));
await page.getByRole("button", { name: "Scroll to the end" }).waitFor();
await say("say nothing");
await eventually("the sent message is in view", () => thread.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60));
await thread.getByText("The model ended its turn without an answer.").waitFor();
await ended();
await page.reload();
await thread.getByText("The model ended its turn without an answer.").waitFor();
assert.equal(await thread.getByText("There is no answer yet.").count(), 0);

// A file is not stretched to the height of a picture in the same message.
await page.getByLabel("Files", { exact: true }).setInputFiles([
  { name: "page.png", mimeType: "image/png", buffer: await page.screenshot() },
  { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
]);
await page.getByRole("button", { name: "Remove notes.txt" }).waitFor();
await say("more");
await ended();
const heightOf = (at) => at.evaluate((box) => box.getBoundingClientRect().height);
await thread.getByRole("img", { name: "page.png" }).waitFor();
assert.ok((await heightOf(thread.getByRole("button", { name: "notes.txt" }))) < 50);

// On a phone, a table is scrolled sideways. Its cells do not become narrow columns of single words.
await page.setViewportSize(narrow);
await say("a table, please");
await ended();
await eventually("the cells are wide enough", async () => (await heightOf(thread.locator("td").last())) < 200);
await page.setViewportSize(wide);

// The palette runs commands, and the arrow keys select them. A dialog lists the shortcuts.
await page.keyboard.press("Control+k");
await page.getByLabel("Screen, conversation or command").fill("theme dark");
await page.getByRole("button", { name: "Use the dark theme" }).waitFor();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
await page.keyboard.press("Control+/");
await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("Start a new chat").waitFor();
await accessible(page, "the shortcuts");
await page.keyboard.press("Escape");
await page.getByRole("heading", { name: "A title" }).first().waitFor({ state: "attached" });
await page.locator("body").click({ position: { x: 1, y: 1 } });
await page.keyboard.press("Shift+Escape");
await eventually("the cursor is in the message field", () => message.evaluate((field) => field === document.activeElement));
await page.keyboard.press("Control+Shift+O");
await page.waitForURL((url) => url.pathname.endsWith("/chat"));

// If an app is switched off in a chat, its tools are not offered to the model there. Other chats still have them. The
// workspace's instructions apply to every chat.
await page.getByRole("button", { name: "Apps in this chat: 1 of 1" }).click();
await page.getByRole("dialog", { name: "Apps in this chat" }).getByLabel("Sample").uncheck();
await accessible(page, "the apps of a chat");
await page.keyboard.press("Escape");
await say("which tools?");
await answers.getByText("No tools, no instructions.").waitFor();
await page.waitForURL(/conv_/);
await ended();
await page.reload();
await page.getByRole("button", { name: "Apps in this chat: 0 of 1" }).click();
await page.getByRole("dialog", { name: "Apps in this chat" }).getByRole("button", { name: "Switch all on" }).click();
await page.keyboard.press("Escape");
await page.getByRole("button", { name: "Apps in this chat: 1 of 1" }).waitFor();
await page.getByRole("button", { name: /^Workspace / }).click();
await page.getByRole("menuitem", { name: "Instructions for models…" }).click();
await page.getByLabel("Instructions", { exact: true }).fill("Show prices in kroner.");
await accessible(page, "the instructions of a workspace");
await page.getByRole("button", { name: "Save" }).click();
await page.getByText("The instructions have been saved.").waitFor();
await say("which tools?");
await answers.getByText("Some tools, and instructions.").waitFor();
await ended();
await page.keyboard.press("Control+Shift+O");
await page.waitForURL((url) => url.pathname.endsWith("/chat"));

// Notifications are off until the person turns them on.
await page.evaluate(() => {
  globalThis.notified = [];
  globalThis.Notification = class {
    static permission = "granted";
    static requestPermission = async () => "granted";
    constructor(text) {
      globalThis.notified.push(text);
    }
  };
});
const hide = (hidden) => page.evaluate((to) => {
  Object.defineProperty(document, "hidden", { value: to, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);
const unseen = async (text) => {
  await hide(true); // hide the page first, because the answer may arrive before the next command
  await say(text);
  await page.waitForFunction(() => document.title.startsWith("Answer ready"));
  await hide(false);
  await ended();
  return page.evaluate(() => globalThis.notified);
};
assert.deepEqual(await unseen("in silence"), []);
await page.getByRole("button", { name: /^Account of/ }).click();
await page.getByRole("menuitem", { name: "Notify me of answers" }).click();
assert.deepEqual(await unseen("say when"), ["Answer ready"]);

// When the person deletes the conversation that is open, a new chat opens.
await page.locator("aside [data-here=true]").hover();
await page.locator("aside [data-here=true]").getByRole("button", { name: /^More actions/ }).click();
await page.getByRole("menuitem", { name: "Delete…" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
await page.waitForURL((url) => url.pathname.endsWith("/chat"));

// Several conversations are deleted at once.
await page.getByRole("button", { name: "Select conversations" }).click();
const selection = page.getByRole("group", { name: "Selected conversations" });
await selection.getByRole("button", { name: "Select all" }).click();
await selection.getByText(/^[4-9] selected$/).waitFor();
await accessible(page, "selected conversations");
await selection.getByRole("button", { name: "Delete…" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
await page.getByText("No conversations yet").waitFor();
await page.waitForURL((url) => url.pathname.endsWith("/chat"));

// An app's page names the tools that a model's provider refuses.
await page.route("**/v1/apps/sample", async (route) => {
  const response = await route.fetch();
  const refusedTools = [{ name: "sample__echo", model: "local:test", reason: "Invalid schema" }];
  await route.fulfill({ response, json: { ...(await response.json()), refusedTools } });
});
await page.goto(`${facts.url}/apps/sample`);
await page.getByText("is not available to local:test because the provider refuses the tool’s definition: Invalid schema").waitFor();
await accessible(page, "an app with a refused tool");
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
