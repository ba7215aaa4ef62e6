// A page whose server is killed during an answer, and started again.
import { accessible, assert, facts, open } from "./browser.mjs";

const { context, page } = await open();
await page.goto(`${facts.url}/chat`);
const message = page.getByLabel("Message", { exact: true });
const thread = page.getByRole("region", { name: "Conversation", exact: true });
await message.fill("tell me all");
await message.press("Enter");
await thread.getByText("The first half").waitFor();

assert.ok((await fetch(`${facts.control}/kill`)).ok);
const away = page.getByText("The connection to the server is lost.");
await away.waitFor();
await thread.getByText("The connection was lost. What was said until then is kept.").waitFor();
await thread.getByText("The first half").waitFor();
await accessible(page, "a page whose server is away");

assert.ok((await fetch(`${facts.control}/start`)).ok);
await away.waitFor({ state: "detached" });
await thread.getByText("tell me all").first().waitFor();

// The events are those of the new process.
await page.getByRole("link", { name: "Activity" }).click();
await page.getByText("live", { exact: true }).waitFor();
const stopped = await page.evaluate(async () => (await fetch("/v1/apps/sample/stop", { method: "POST" })).status);
assert.equal(stopped, 200);
await page.getByText("sample was stopped").first().waitFor();

// The conversation is there and goes on.
await page.getByRole("link", { name: "Chat" }).click();
await page.locator("a[href^='/chat/conv_']").first().click();
await thread.getByText("tell me all").first().waitFor();
await message.fill("go on");
await message.press("Enter");
await thread.getByText("The other half.").waitFor();
await page.reload();
await thread.getByText("The other half.").waitFor();
await thread.getByText("tell me all").first().waitFor();
await context.close();
