// Tests actions while an answer arrives, and what the person's other windows show meanwhile.
import { accessible, assert, eventually, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const message = (at) => at.getByLabel("Message", { exact: true });
const thread = (at) => at.getByRole("region", { name: "Conversation", exact: true });
await page.goto(`${facts.url}/chat`);

const stop = (at) => at.getByRole("button", { name: "Stop", exact: true });
const inField = (at) => eventually("the cursor is in the message field", () => message(at).evaluate((field) => field === document.activeElement));
const attached = (at, name) => at.getByRole("button", { name: `Remove ${name}` });
// hold delays the next message to the server, as a slow upload would, until the function that hold returns is called.
async function hold() {
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route("**/v1/chat/stream", async (route) => { await held; await route.continue(); }, { times: 1 });
  return release;
}

// A first message that was not sent is sent again. The cursor stays in the field although the pressed buttons have
// disappeared.
await page.route("**/v1/chat/stream", (route) => route.abort());
await message(page).fill("hold on");
await page.getByRole("button", { name: "Send", exact: true }).click();
await thread(page).getByText("Not sent").waitFor();
await inField(page);
// Discard puts an unsent message back into the field, with the cursor, and it can be sent later.
await thread(page).getByRole("button", { name: "Discard", exact: true }).click();
await inField(page);
assert.equal(await message(page).inputValue(), "hold on");
await page.keyboard.press("Enter");
await thread(page).getByText("Not sent").waitFor();
await page.unroute("**/v1/chat/stream");
let release = await hold();
await thread(page).getByRole("button", { name: "Retry", exact: true }).click();
await stop(page).waitFor();
await inField(page);

// Text and files that are added before the server has the message stay in the field when the chat gets its address.
// They do not become the draft of the next chat, even if a file was still being read.
await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "early.txt", mimeType: "text/plain", buffer: Buffer.from("early") });
await attached(page, "early.txt").waitFor();
await page.evaluate(() => {
  const read = File.prototype.arrayBuffer;
  globalThis.readLate = new Promise((resolve) => { globalThis.goOn = resolve; });
  File.prototype.arrayBuffer = async function () { await globalThis.readLate; return read.call(this); };
});
await page.keyboard.type("and then");
await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "late.txt", mimeType: "text/plain", buffer: Buffer.from("late") });
release();
await page.waitForURL(/\/chat\/conv_/);
await page.evaluate(() => globalThis.goOn());
await attached(page, "late.txt").waitFor();
await thread(page).getByText("Working on it.").waitFor();
await inField(page);
assert.equal(await message(page).inputValue(), "and then");
const next = await context.newPage();
await next.goto(`${facts.url}/chat`);
assert.equal(await message(next).inputValue(), "");
await next.goto(page.url());
await attached(next, "early.txt").waitFor();
await attached(next, "late.txt").waitFor();
assert.equal(await message(next).inputValue(), "and then");
await next.close();
await stop(page).click();
const first = new URL(page.url()).pathname;
const link = page.locator(`a[href='${first}']`);
const newChat = async () => {
  await page.keyboard.press("Control+Shift+O");
  await page.waitForURL((url) => url.pathname.endsWith("/chat"));
};
const draftOfNext = () => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("ropewalk.draft") && key.endsWith(" new")));

// A message that reaches the server late does not replace the conversation that is open by then.
await newChat();
release = await hold();
await message(page).fill("one");
await message(page).press("Enter");
await link.click();
await page.waitForURL((url) => url.pathname === first);
await message(page).fill("foo");
release();
await eventually("the sent message is no longer a draft", async () => (await draftOfNext()).length === 0);
await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
assert.equal(new URL(page.url()).pathname, first);
await thread(page).getByText("hold on").waitFor();
assert.equal(await message(page).inputValue(), "foo");

// If the person returns to the new chat in the meantime, it shows the message and gets its address.
await newChat();
release = await hold();
await message(page).fill("two");
await message(page).press("Enter");
await link.click();
await page.waitForURL((url) => url.pathname === first);
assert.equal(await message(page).inputValue(), "foo");
await newChat();
await thread(page).getByText("two").waitFor();
assert.equal(await message(page).inputValue(), "");
release();
await page.waitForURL(/\/chat\/conv_/);
await thread(page).getByText("Working on it.").waitFor();
assert.equal(await message(page).inputValue(), "");
await stop(page).click();

// A late message does not take the person away from another screen either.
await newChat();
release = await hold();
await message(page).fill("three");
await message(page).press("Enter");
await stop(page).waitFor();
await page.getByRole("link", { name: "Apps", exact: true }).click();
await page.getByRole("heading", { name: "Apps", exact: true }).waitFor();
release();
await eventually("the sent message is no longer a draft", async () => (await draftOfNext()).length === 0);
await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
assert.match(page.url(), /\/apps$/);
await page.goto(`${facts.url}/chat`);

// The new chats of two tabs have drafts of their own, which survive reloads. The draft of a closed tab is found in the next one.
const wrote = async (at, text) => {
  await at.goto(`${facts.url}/chat`);
  await message(at).fill(text);
  return at;
};
await wrote(page, "in the first tab");
const second = await wrote(await context.newPage(), "in the second tab");
for (const [at, text] of [[page, "in the first tab"], [second, "in the second tab"]]) {
  await at.reload();
  await message(at).waitFor();
  assert.equal(await message(at).inputValue(), text);
}
await second.close();
const third = await context.newPage();
await third.goto(`${facts.url}/chat`);
await message(third).waitFor();
assert.equal(await message(third).inputValue(), "in the second tab");
await message(third).fill("");
await third.close();
assert.equal(await message(page).inputValue(), "in the first tab");

// Why a provider failed before its answer is shown alike during the run, after a reload, and in another window.
await message(page).fill("please fail");
await message(page).press("Enter");
const reason = "does not accept the server's key";
const answer = async (at) => {
  await thread(at).getByRole("button", { name: "Fork from here" }).waitFor({ state: "attached" });
  return at.getByRole("article", { name: "Answer" }).textContent(); // a hidden page has no innerText
};
await thread(page).getByText(reason).waitFor();
const live = await answer(page);
const window2 = await context.newPage();
await window2.goto(page.url());
await page.reload();
for (const at of [page, window2]) {
  await thread(at).getByText(reason).waitFor();
  assert.equal(await answer(at), live);
  assert.equal(await thread(at).getByText("There is no answer yet.").count(), 0);
}
await window2.close();
await accessible(page, "an answer that failed");
const failed = page.url();
await thread(page).getByRole("button", { name: "Retry", exact: true }).filter({ hasText: "Retry" }).click();
await page.waitForURL((url) => url.href !== failed && /conv_/.test(url.pathname));
await thread(page).getByText(reason).waitFor();
await newChat();

// Esc stops an answer and focuses the message field. The text so far is kept and was announced.
await message(page).fill("slow, please");
await message(page).press("Enter");
await thread(page).getByText("Working on it.").waitFor();
await page.locator("[aria-live=polite]", { hasText: "Working on it." }).first().waitFor({ state: "attached" });
const answerStyle = () => thread(page).getByRole("article", { name: "Answer" }).getAttribute("class");
const liveStyle = await answerStyle();
await eventually("the tab is named after the message", async () => (await page.title()).startsWith("slow, please"));
await page.keyboard.press("Escape");
await page.getByRole("button", { name: "Send", exact: true }).waitFor();
await inField(page);
await thread(page).getByText("Working on it.").waitFor();
assert.equal(await answerStyle(), liveStyle, "a change of the style at the end would lay out and paint the whole answer again");

// If another window sends a message first, this window's message waits for that answer. A message that cannot wait
// either is put back into the field.
const late = await Promise.all([context.newPage(), context.newPage()]);
for (const at of late) {
  await at.goto(page.url());
  await thread(at).getByText("Working on it.").waitFor();
}
await message(page).fill("go on");
await message(page).press("Enter");
await eventually("the second answer has begun", async () => (await thread(page).getByText("Working on it.").count()) === 2);
for (const [i, at] of late.entries()) {
  await message(at).fill(`from window ${i}`);
  await message(at).press("Enter");
  await at.getByText("Queued", { exact: true }).waitFor();
  await stop(at).waitFor();
}
await eventually("the refused message is in the field", async () => (await message(late[1]).inputValue()) === "from window 1");
assert.equal(await thread(late[0]).getByRole("alert").count(), 0);
await late[0].getByRole("button", { name: "Withdraw" }).click();
await eventually("the withdrawn message is in the field", async () => (await message(late[0]).inputValue()) === "from window 0");
await message(late[0]).fill("");
await message(late[1]).fill("");
for (const at of late) await at.close();
await stop(page).click();
await page.getByRole("button", { name: "Send", exact: true }).waitFor();

// A waiting call is decided in its card, with one click.
await message(page).fill("echo it");
await message(page).press("Enter");
const decision = thread(page).getByRole("region", { name: "Decision on sample__echo" });
await decision.getByText(/"text": "hi"/).waitFor();
await accessible(page, "a call that waits in a chat");
await decision.getByRole("button", { name: "Allow once" }).click();
await thread(page).getByText("It was echoed.").waitFor();
await thread(page).getByRole("button", { name: "Fork from here" }).last().waitFor();
await decision.waitFor({ state: "detached" });
await page.locator("[aria-live=polite]", { hasText: "It was echoed." }).first().waitFor({ state: "attached" }); // its end came with the text

// The palette opens screens and conversations.
await page.keyboard.press("Control+k");
await page.getByLabel("Screen, conversation or command").fill("usage");
await page.getByRole("button", { name: "Go to Usage" }).waitFor();
await accessible(page, "the palette");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
await page.goBack();
await thread(page).getByText("It was echoed.").waitFor();

// Printing includes the whole thread, which is not cut off by a scrolling box.
await page.emulateMedia({ media: "print" });
assert.ok(await thread(page).evaluate((box) => box.scrollHeight <= box.clientHeight + 1 && getComputedStyle(document.querySelector("aside")).display === "none"));
await page.emulateMedia({ media: "screen" });

// A deletion is shown immediately in another window.
const other = await context.newPage();
await other.goto(page.url());
await thread(other).getByText("It was echoed.").waitFor();
const [deleted] = /conv_\w+/.exec(page.url());
await page.evaluate((id) => fetch(`/v1/conversations/${id}`, { method: "DELETE" }), deleted);
await other.getByRole("heading", { name: "This conversation was deleted" }).waitFor();
await other.locator(`a[href*='${deleted}']`).waitFor({ state: "detached" });
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
