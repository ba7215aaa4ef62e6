// An answer continues while its page is reloaded, and the person's other pages show it.
import { assert, eventually, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
const message = (at) => at.getByLabel("Message", { exact: true });
const thread = (at) => at.getByRole("region", { name: "Conversation", exact: true });
const more = async () => assert.ok((await fetch(`${facts.control}/more`)).ok);
const counted = (at, text) => thread(at).getByText(text).count();

await page.goto(`${facts.url}/chat`);
await message(page).fill("tell me");
await message(page).press("Enter");
await thread(page).getByText("The first part.").waitFor();
await page.waitForURL(/conv_/);
await page.reload();
await thread(page).getByText("The first part.").waitFor();

const other = await context.newPage();
await other.goto(page.url());
await thread(other).getByText("The first part.").waitFor();
await other.getByRole("button", { name: "Stop", exact: true }).waitFor();

await more();
for (const at of [page, other]) {
  await thread(at).getByText("The second part.").waitFor();
  assert.equal(await counted(at, "The first part."), 1, "the text is shown once");
}
await more();
for (const at of [page, other]) {
  await thread(at).getByText("The end.").waitFor();
  await thread(at).getByRole("button", { name: "Fork from here" }).last().waitFor();
  assert.equal(await counted(at, "The first part."), 1, "the text is shown once");
}

// A message sent during an answer waits until it ends. Other pages show it and can withdraw it.
await message(page).fill("tell me more");
await message(page).press("Enter");
await thread(page).getByText("The first part.").nth(1).waitFor();
const queue = async (text) => {
  await message(page).fill(text);
  await page.getByRole("button", { name: "Send after this answer", exact: true }).click();
  for (const at of [page, other]) await at.getByRole("status").filter({ hasText: text }).waitFor();
};
await queue("never mind");
await other.getByRole("button", { name: "Withdraw", exact: true }).click();
await page.getByRole("button", { name: "Withdraw", exact: true }).waitFor({ state: "detached" });
await eventually("the withdrawn message can be changed and sent", async () => (await message(other).inputValue()) === "never mind");
await queue("and then?");
await more();
await more();
for (const at of [page, other]) {
  await thread(at).getByText("and then?", { exact: true }).waitFor();
  await thread(at).getByText("The first part.").nth(2).waitFor();
}
await more();
await more();
for (const at of [page, other]) await thread(at).getByText("The end.").nth(2).waitFor();
await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });

// Stop ends the run on the server, so the next message can be sent immediately.
for (const nth of [3, 4]) {
  await message(page).fill("tell me again");
  await message(page).press("Enter");
  await thread(page).getByText("The first part.").nth(nth).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await thread(page).getByText("stopped", { exact: true }).nth(nth - 3).waitFor();
}
const id = /conv_\w+/.exec(page.url())[0];
await page.waitForFunction(async (at) => (await fetch(`/v1/conversations/${at}/run`)).status === 404, id);
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
