// The first visit to a server without a model suggests actions that need no model.
import { accessible, assert, facts, open } from "./browser.mjs";

const { context, page, problems } = await open();
await page.goto(facts.url + "/");
await page.getByRole("heading", { name: "What would you like to do?" }).waitFor();
const tryOne = page.getByRole("button", { name: "Try a tool" });
await tryOne.waitFor();
assert.equal(await page.getByRole("button", { name: /^What can/ }).count(), 0, "a question for a model is suggested");
await accessible(page, "a new chat without a model");
await page.getByRole("button", { name: "Connect a client" }).click();
await page.getByRole("heading", { name: "Connect a client" }).waitFor();
await page.goBack();
await tryOne.click();
await page.getByRole("heading", { name: "Tools", exact: true }).waitFor();
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
