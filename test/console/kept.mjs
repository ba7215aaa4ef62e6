// Nothing that a person has written, chosen or sent is lost because of a reload, a fork or an unreachable server.
import { readFileSync } from "node:fs";
import { accessible, assert, eventually, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const pixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const message = page.getByLabel("Message", { exact: true });
const thread = page.getByRole("region", { name: "Conversation", exact: true });
const answers = thread.getByRole("article", { name: "Answer" });
const ended = () => page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
const drafted = (text) => eventually(`the message is ${JSON.stringify(text)}`, async () => (await message.inputValue()) === text);
const history = () => page.evaluate(async () => (await (await fetch(`/v1/conversations/${/conv_\w+/.exec(location.pathname)[0]}/history`)).json()).messages);

// Several files are chosen at once, and each one is checked before it is sent.
await page.goto(`${facts.url}/chat`);
const refused = { name: "d.zip", mimeType: "application/zip", buffer: Buffer.from([0x50, 0x4b, 0x03, 0x04, 0, 0xff]) };
await page.getByLabel("Files", { exact: true }).setInputFiles([
  { name: "a.png", mimeType: "image/png", buffer: pixel },
  { name: "b.ts", mimeType: "video/mp2t", buffer: Buffer.from("const b: number = 1;") },
  { name: "c.txt", mimeType: "text/plain", buffer: Buffer.from("the words") },
  refused,
]);
await page.getByText("d.zip has a type that models cannot read.").waitFor();
for (const name of ["a.png", "b.ts", "c.txt"]) await page.getByRole("button", { name: `Remove ${name}` }).waitFor();
await message.fill("look at these");
// Notices cover neither the message field nor its buttons, at any width.
for (const width of [375, 768, 1440]) {
  await page.setViewportSize({ width, height: 812 });
  await eventually(`at ${width} px, a notice ends above the form`, async () => {
    const notice = page.getByText("d.zip has a type").last();
    if ((await notice.count()) === 0) await page.getByLabel("Files", { exact: true }).setInputFiles(refused); // notices disappear after some seconds
    const [above, field] = await Promise.all([notice.boundingBox({ timeout: 5_000 }).catch(() => null), page.locator("form", { has: message }).boundingBox()]);
    return above !== null && above.y + above.height <= field.y;
  });
}

// A file can be dropped anywhere on the chat.
const dropped = await page.evaluateHandle(() => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(["dropped"], "e.txt", { type: "text/plain" }));
  return transfer;
});
await page.locator("h1").first().dispatchEvent("drop", { dataTransfer: dropped });
await page.getByRole("button", { name: "Remove e.txt" }).click();

// The draft survives a reload.
await page.reload();
await page.getByRole("button", { name: "Remove c.txt" }).waitFor();
await drafted("look at these");
await page.getByRole("combobox", { name: "Model" }).selectOption({ label: "Another model…" });
await page.getByRole("dialog").getByLabel("Model").fill("local:other");
await page.getByRole("button", { name: "Use it" }).click();
await message.press("Enter");
await answers.getByText("Seen by other.").waitFor();
await page.waitForURL(/conv_/);
await thread.getByRole("img", { name: "a.png" }).waitFor();
assert.equal((await history())[0].metadata.attachments.length, 3);
await drafted("");
// The server stores the conversation's model, so this browser keeps no draft for it.
assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((key) => /^ropewalk\.draft .* conv_/.test(key))), []);
assert.equal(await page.getByRole("combobox", { name: "Model" }).inputValue(), "local:other");

// Pictures open at full size, and other files can be downloaded.
await thread.getByRole("button", { name: "Enlarge a.png" }).click();
await page.getByRole("dialog", { name: "a.png" }).waitFor();
await accessible(page, "an enlarged picture");
await page.keyboard.press("Escape");
await page.reload();
const [file] = await Promise.all([page.waitForEvent("download"), thread.getByRole("button", { name: "c.txt" }).click()]);
assert.equal(readFileSync(await file.path(), "utf8"), "the words");

// Retry sends the same files to the same model, in a fork.
const before = page.url();
await answers.last().getByRole("button", { name: "Retry", exact: true }).click();
await page.waitForURL((url) => url.href !== before && /conv_/.test(url.pathname));
await answers.getByText("Seen by other.").waitFor();
await answers.getByRole("button", { name: "Fork from here" }).waitFor();
await ended();
assert.deepEqual((await history())[0].metadata.attachments.map((a) => a.name), ["a.png", "b.ts", "c.txt"]);

// A picture can be sent without text.
await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "alone.png", mimeType: "image/png", buffer: pixel });
await page.getByRole("button", { name: "Remove alone.png" }).waitFor();
await page.getByRole("button", { name: "Send", exact: true }).click();
await answers.nth(1).getByText("Seen by other.").waitFor();
await answers.nth(1).getByRole("button", { name: "Fork from here" }).waitFor();
await thread.getByRole("img", { name: "alone.png" }).waitFor();

// While the server is unreachable, the page keeps everything. An unsent message can be sent again.
assert.ok((await fetch(`${facts.control}/kill`)).ok);
await page.getByText("The connection to the server was lost.").waitFor();
await message.fill("are you there?");
await message.press("Enter");
await thread.getByText("Not sent").waitFor();
await accessible(page, "a message that was not sent");
await page.getByRole("link", { name: "Apps" }).click();
assert.equal(await page.getByRole("alert").count(), 0, "a screen waits for the server instead of failing");
assert.ok((await fetch(`${facts.control}/start`)).ok);
await page.locator("a[href$='/apps/sample']").waitFor(); // without a reload
await page.getByText("The connection to the server was lost.").waitFor({ state: "detached" });
await page.goBack();
await thread.getByText("Not sent").waitFor();
await thread.getByRole("button", { name: "Retry", exact: true }).filter({ hasText: "Retry" }).last().click();
await answers.nth(2).getByText("Seen by other.").waitFor();
await eventually("the message that was sent again is shown once", async () => (await thread.getByText("are you there?").count()) === 1);

// The model and the person see a picture that a tool returns. It is still there after a reload.
await page.keyboard.press("Control+Shift+O");
await page.waitForURL((url) => url.pathname.endsWith("/chat"));
await eventually("the tool is listed", () =>
  page.evaluate(async () => (await (await fetch("/v1/tools")).json()).tools.some((tool) => tool.name === "everything__get-tiny-image")));
await message.fill("draw something");
await message.press("Enter");
await answers.getByText("I see a picture.").waitFor();
const drawn = thread.getByRole("img", { name: "Picture from everything" });
await drawn.waitFor();
await ended();
await page.reload();
await drawn.waitFor();
assert.ok(await drawn.evaluate((image) => image.decode().then(() => image.naturalWidth > 1)), "the picture is drawn");

// The server's default model can be chosen in a conversation that another model answered.
await page.keyboard.press("Control+Shift+O");
await page.waitForURL((url) => url.pathname.endsWith("/chat"));
const model = page.getByRole("combobox", { name: "Model" });
await model.selectOption({ label: "local:other" });
await message.fill("who are you?");
await message.press("Enter");
await answers.getByText("Seen by other.").waitFor();
await ended();
await model.selectOption({ label: "local:test" });
await message.fill("and now?");
await message.press("Enter");
await answers.getByText("Seen by test.").waitFor();
await ended();
await model.selectOption({ label: "local:other" });
await message.fill("and again?");
await message.press("Enter");
await answers.nth(2).getByText("Seen by other.").waitFor();
assert.deepEqual(problems, [], "what the page complained about");
await context.close();
