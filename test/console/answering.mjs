// Actions while an answer arrives, and what the person's other windows show.
import { accessible, assert, eventually, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const message = (at) => at.getByLabel("Message", { exact: true });
const thread = (at) => at.getByRole("region", { name: "Conversation", exact: true });
await page.goto(`${facts.url}/chat`);

// What is written before the server has the message stays in the field when the chat gets its address. It isn't the draft of the next chat.
let written;
const writing = new Promise((resolve) => { written = resolve; });
await page.route("**/v1/chat/stream", async (route) => { await writing; await route.continue(); });
await message(page).fill("hold on");
await message(page).press("Enter");
await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
await message(page).pressSequentially("and then");
written();
await page.waitForURL(/\/chat\/conv_/);
await thread(page).getByText("Working on it.").waitFor();
assert.equal(await message(page).inputValue(), "and then");
const next = await context.newPage();
await next.goto(`${facts.url}/chat`);
assert.equal(await message(next).inputValue(), "");
await next.close();
await page.unroute("**/v1/chat/stream");
await page.getByRole("button", { name: "Stop", exact: true }).click();
await page.goto(`${facts.url}/chat`);

// Esc stops an answer and focuses the message field. The text so far is kept and was announced.
await message(page).fill("slow, please");
await message(page).press("Enter");
await thread(page).getByText("Working on it.").waitFor();
await page.locator("[aria-live=polite]", { hasText: "Working on it." }).first().waitFor({ state: "attached" });
await page.keyboard.press("Escape");
await page.getByRole("button", { name: "Send", exact: true }).waitFor();
await eventually("the cursor is in the message", () => message(page).evaluate((field) => field === document.activeElement));
await thread(page).getByText("Working on it.").waitFor();

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

// The palette opens screens and conversations.
await page.keyboard.press("Control+k");
await page.getByLabel("Screen, conversation or command").fill("usage");
await page.getByRole("button", { name: "Go to Usage" }).waitFor();
await accessible(page, "the palette");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
await page.goBack();
await thread(page).getByText("It was echoed.").waitFor();

// Printing includes the whole thread: no scrolling box cuts it off.
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
assert.deepEqual(problems, [], "what the page complained about");
await context.close();
