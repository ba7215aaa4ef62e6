// Follows a person's first visit, from login to logout.
import { readFileSync } from "node:fs";
import { accessible, assert, eventually, facts, logOut, open, picture, settled } from "./browser.mjs";

const { context, page, problems } = await open();
await page.goto(facts.url + "/");

// Log in. A wrong key is refused, and the right key is needed only once.
await page.getByLabel("API key").fill("not-the-key-at-all");
await page.getByRole("button", { name: "Log in" }).click();
await page.getByText("The server did not accept this API key.").waitFor();
await settled(page);
await accessible(page, "the login");
await page.getByLabel("API key").fill(facts.key);
await page.getByRole("button", { name: "Log in" }).click();
await page.getByRole("link", { name: "Apps" }).click();
await page.reload();

// Install a bundle that needs settings, using its form.
await page.getByRole("button", { name: "Install app" }).click();
await page.getByRole("tab", { name: "Server path" }).click();
await page.getByLabel("Path on the server").fill(facts.filesystem);
await page.getByRole("button", { name: "Install", exact: true }).click();
await page.getByRole("heading", { name: /Settings for/ }).waitFor();
await settled(page);
await picture(page, "install-settings-1440");
await accessible(page, "the settings of an app");
await page.getByRole("button", { name: "Install", exact: true }).click();
await page.getByText("This field is required.").waitFor();
await page.getByLabel("Allowed directories").fill(facts.folder);
await page.getByRole("button", { name: "Install", exact: true }).click();
await page.getByRole("tab", { name: /Tools/ }).waitFor();

// Try one of its tools.
await page.getByRole("tab", { name: /Tools/ }).click();
await page.getByRole("button", { name: /read_text_file/ }).click();
await page.getByRole("button", { name: "Run tool" }).click();
await page.getByText("This field is required.").first().waitFor();
await page.getByLabel(/^path/).fill(facts.folder + "/note.txt");
await page.getByRole("button", { name: "Run tool" }).click();
await page.getByRole("heading", { name: "Result" }).waitFor();
await page.getByText("the words of the note").first().waitFor();
await settled(page);

// Stored settings are shown without their values, and the log has the app's output.
await page.getByRole("tab", { name: "Settings" }).click();
await page.getByLabel("Allowed directories").and(page.getByPlaceholder("Stored. Type to replace it")).waitFor();
await page.getByRole("tab", { name: "Logs" }).click();
await page.getByRole("log").getByText("Secure MCP Filesystem Server").first().waitFor();
await settled(page);
await accessible(page, "the log of an app");

// Chat with a model that calls the tool. The page requests the history when the run starts. The script holds back this
// response until the run has ended. The history then lacks the run's answer, unless the run ended before the request.
let histories = 0;
let late = false;
await page.route("**/v1/conversations/*/history", async (route) => {
  const first = ++histories === 1;
  const response = await route.fetch();
  if (first) late = (await response.text()).includes("The note is short.");
  if (first && !late) await thread.getByText("The note is short.").waitFor();
  await route.fulfill({ response }).catch(() => undefined); // the page may have cancelled this request
});
await page.getByRole("link", { name: "Chat" }).click();
const thread = page.getByRole("region", { name: "Conversation", exact: true });
const message = page.getByLabel("Message", { exact: true });
await message.fill("read the note");
await message.press("Enter");
await thread.getByText("The note is short.").waitFor();
// The text before a call stays above the call's card, both live and in the history.
const ordered = async (when) => {
  const text = await thread.getByRole("article", { name: "Answer" }).first().textContent();
  const [before, card, after] = ["I read it.", "filesystem", "The note is short."].map((part) => text.indexOf(part));
  assert.ok(before >= 0 && before < card && card < after, `${when}, the answer is ${JSON.stringify(text)}`);
};
await ordered("while it arrives");
await thread.getByRole("article", { name: "Answer" }).getByRole("button", { name: "Fork from here" }).waitFor();
await ordered("from the history");
await eventually("the history is requested again once the run has ended", () => late || histories > 1);
await thread.getByText("The note is short.").waitFor();
const card = thread.locator("summary", { hasText: "filesystem" });
await card.click();
await page.getByText("the words of the note").first().waitFor();
await page.getByRole("link", { name: /About the note/ }).waitFor();
await accessible(page, "a chat");

// ended waits until the run has ended.
const ended = () => page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });

// A view of an app responds to a click.
await ended();
await message.fill("what time is it");
await message.press("Enter");
const view = page.frameLocator("iframe").frameLocator("iframe");
await view.getByRole("button", { name: /Get Server Time/i }).click();
await page.getByText(/called get-time ✓/).waitFor();
await settled(page);
await picture(page, "chat-view-1440");

// An app asks a question in a form.
await ended();
await message.fill("ask me");
await message.press("Enter");
const question = page.getByRole("region", { name: "Question from everything" });
await question.waitFor();
await accessible(page, "a question from an app");
await picture(page, "question-1440");
const name = question.getByLabel("String", { exact: false }).first();
const inView = () => question.evaluate((at) => at.getBoundingClientRect().top >= at.closest("[tabindex]").getBoundingClientRect().top);
await eventually("the beginning of the long form is in view", inView);
await name.fill("Ada");
await page.getByRole("link", { name: "Tools", exact: true }).click();
await page.getByRole("heading", { name: "Tools", exact: true }).waitFor();
await page.goBack();
await name.waitFor();
assert.equal(await name.inputValue(), "Ada");
await question.getByRole("button", { name: "Send answer" }).click();
await thread.getByText("You have answered.").waitFor();

// A call that needs approval waits, and its chat continues once it is approved.
await ended();
await message.fill("say hello");
await message.press("Enter");
await thread.locator("summary", { hasText: "everything" }).last().waitFor();
await page.getByRole("link", { name: /^Approvals/ }).click();
await page.getByRole("heading", { name: "Approvals", exact: true }).waitFor();
await page.getByText('"message": "hello"').waitFor();
await settled(page);
await accessible(page, "the approvals");
await page.getByRole("button", { name: "Allow once" }).click();
await page.getByText("Nothing is waiting for approval").waitFor();
await page.getByRole("link", { name: "Activity" }).click();
await page.getByText(/everything changed data through/).first().waitFor();
await page.getByText("A call to everything__echo was approved").waitFor();
await page.getByRole("link", { name: "Chat" }).click(); // without a reload, which would end the run
await page.getByRole("link", { name: /About the note/ }).first().click();
await thread.getByText("It said hello.").waitFor();

// The audit trail lists all of this. It can be filtered and exported.
await page.getByRole("link", { name: "Activity" }).click();
await page.getByRole("tab", { name: "Audit trail" }).click();
const trail = page.getByRole("region", { name: "Audit trail" });
await trail.getByText("filesystem__read_text_file").first().waitFor();
await settled(page);
await accessible(page, "the audit trail");
await picture(page, "audit-1440");
assert.equal(await trail.getByText("begun").count(), 0, "a finished action is not also shown as begun");
await page.getByLabel("Search targets").fill("everything__echo");
await trail.getByText("filesystem__read_text_file").first().waitFor({ state: "detached" });
await trail.getByText("everything__echo").first().waitFor();
// Calls show their arguments, which are abbreviated until they are opened.
const passed = trail.locator("summary", { hasText: '{"message":"hello"}' }).first();
await passed.click();
await trail.getByRole("region", { name: "Arguments" }).getByText('"message": "hello"').waitFor();
await accessible(page, "the arguments of a call");
await page.waitForURL(/tab=audit.*tool=everything__echo/); // the address contains the filter
await page.reload();
await eventually("the filter is kept", async () => (await page.getByLabel("Search targets").inputValue()) === "everything__echo");
await trail.getByText("everything__echo").first().waitFor();
await page.getByLabel("Search targets").fill("");
await page.getByLabel("Outcome").selectOption("unauthenticated");
await trail.getByText("logged in with a key").first().waitFor(); // the wrong key
await page.getByLabel("Person").selectOption({ label: "Owner" });
await page.getByText("No matches").waitFor();
await page.getByLabel("Person").selectOption("");
const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
const exported = readFileSync(await file.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
assert.ok(exported.length > 0 && exported.every((r) => r.outcome === "unauthenticated"), `the export is ${JSON.stringify(exported)}`);
assert.ok(exported.some((r) => r.action === "POST /v1/auth/login"), "the refused login is exported");

// A dry run of an import is marked.
const planned = await page.evaluate(async () => {
  const body = JSON.stringify({ mcpServers: { planned: { url: "https://mcp.example.com/mcp" } }, dryRun: true });
  return (await fetch("/v1/apps/import", { method: "POST", headers: { "Content-Type": "application/json" }, body })).status;
});
assert.equal(planned, 200);
const today = new Date().toISOString().slice(0, 10);
await page.goto(`${facts.url}/activity?tab=audit&action=apps/import&day=${today}`);
await trail.getByText("dry run").waitFor();
await eventually("the day is the filter", async () => (await page.getByLabel("From").inputValue()) === today);

// An app's page has charts of its calls and a link to the calls.
await page.goto(`${facts.url}/apps/everything`);
await page.getByRole("img", { name: /^\d+ calls?, by hour: \d/ }).waitFor();
await settled(page);
await accessible(page, "the charts of an app");
await page.getByRole("link", { name: "Show the calls" }).click();
await trail.getByText("everything__echo").first().waitFor();

// Logging out ends the session.
await logOut(page);
const after = await page.evaluate(async () => (await fetch("/v1/apps")).status);
assert.equal(after, 401, "the session is over after the logout");
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
