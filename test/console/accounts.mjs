// Ada, a workspace admin, and Bob link accounts for the remote app `far` and manage them on the Accounts screen.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { accessible, assert, eventually, excess, facts, launch, logIn, narrow, open, picture, settled, wide } from "./browser.mjs";

const browser = await launch();
const [ada, bob] = [await open({ browser }), await open({ browser })];
await logIn(ada.page, "ada");
await logIn(bob.page, "bob");

const admin = async (method, path, body) => {
  const response = await fetch(facts.url + path, {
    method, headers: { Authorization: `Bearer ${facts.key}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
};
const { users } = await admin("GET", "/v1/users");
const shared = (await admin("GET", "/v1/workspaces")).workspaces.find((w) => !w.personalOf);
await admin("POST", `/v1/workspaces/${shared.id}/members`, { user: users.find((u) => u.email === "ada@example.com").id, role: "admin" });
await ada.page.reload();
await ada.page.getByRole("button", { name: /^Workspace/ }).filter({ hasText: "admin" }).waitFor();

// consent agrees on the link page that act opens in a new tab, and returns the page's address.
async function consent({ context }, act, name) {
  const [tab] = await Promise.all([context.waitForEvent("page"), act()]);
  await tab.getByRole("heading", { name: "Link an account at far" }).waitFor();
  const address = tab.url();
  const asked = await tab.locator("body").innerText();
  for (const said of [facts.issuer, name, "tools", "only you"]) assert.ok(asked.includes(said), `the page does not name ${said}: ${asked}`);
  await accessible(tab, "the page on which an account is linked");
  await tab.getByRole("button", { name: "Continue to log in" }).click();
  await tab.getByRole("heading", { name: "The account is linked" }).waitFor();
  await accessible(tab, "the end of a login");
  await tab.close();
  return address;
}

const { page } = ada;
const row = (name) => page.getByRole("region", { name: "Accounts at far" }).getByRole("row").filter({ hasText: name });
const choose = async (name, item) => {
  await page.getByRole("button", { name: `More actions for ${name} at far` }).click();
  await page.getByRole("menuitem", { name: item }).click();
};
const link = async (button, name) => {
  await page.getByRole("button", { name: button }).click();
  const dialog = page.getByRole("dialog");
  if (name) await dialog.getByLabel("Account name").fill(name);
  return dialog;
};

// The first account is named main and is the default. The page notices the login in the other tab.
await page.getByRole("link", { name: "Accounts" }).click();
await page.getByText("No account is linked").waitFor();
let dialog = await link("Link an account");
const adas = await consent(ada, () => dialog.getByRole("button", { name: "Continue" }).click(), "main");
await dialog.waitFor({ state: "detached" });
await row("main").getByText("default").waitFor();
await row("main").getByText("linked", { exact: true }).waitFor();

// A second account needs a different name.
dialog = await link("Link another", "main");
await dialog.getByRole("button", { name: "Continue" }).click();
await dialog.getByText("An account called main is already linked.").waitFor();
await dialog.getByLabel("Account name").fill("My work");
await dialog.getByRole("button", { name: "Continue" }).click();
await dialog.getByText("Use 1 to 32 lower-case letters").waitFor();
await dialog.getByLabel("Account name").fill("work");
await consent(ada, () => dialog.getByRole("button", { name: "Continue" }).click(), "work");
await dialog.waitFor({ state: "detached" });
await row("work").waitFor();

// Make another account the default, and rename it.
await choose("work", "Make default");
await row("work").getByText("default").waitFor();
await eventually("there is one default", async () => (await row("main").getByText("default").count()) === 0);
await choose("work", "Rename…");
await page.getByRole("dialog").getByLabel("Account name").fill("office");
await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
await row("office").waitFor();

// Log in again with the same account.
await choose("office", "Log in again…");
dialog = page.getByRole("dialog");
await consent(ada, () => dialog.getByRole("button", { name: "Continue" }).click(), "already linked");
await dialog.waitFor({ state: "detached" });

// A call asks which of her two accounts to use, and its card shows the account.
await page.goto(facts.url + "/chat");
await page.getByLabel("Message", { exact: true }).fill("Change one");
await page.getByLabel("Message", { exact: true }).press("Enter");
const which = page.getByRole("region", { name: "Question from Ropewalk" });
await which.getByLabel("Account").selectOption("office");
await settled(page);
await accessible(page, "a call that asks for an account");
await which.getByRole("button", { name: "Send answer" }).click();
const thread = page.getByRole("region", { name: "Conversation", exact: true });
await thread.getByText("It is changed there.").waitFor();
await thread.getByText("far as office").waitFor();
await page.getByRole("link", { name: "Accounts" }).click();
await row("office").waitFor();

// refused opens one of Ada's links as Bob, who cannot use it.
async function refused(address) {
  const thief = await bob.context.newPage();
  await thief.goto(address);
  await thief.getByText("this link was created for another person").waitFor();
  assert.equal(await thief.getByRole("button").count(), 0, "nothing to agree to");
  await thief.close();
}
await refused(adas);

// Bob's call waits for his login, then continues.
await bob.page.goto(facts.url + "/chat");
await bob.page.getByLabel("Message", { exact: true }).fill("Change it");
await bob.page.getByLabel("Message", { exact: true }).press("Enter");
const card = bob.page.getByRole("region", { name: "Login at far" });
await card.getByText("link the account main").waitFor();
await settled(bob.page);
await accessible(bob.page, "a call that waits for a login");
await picture(bob.page, "login-needed-1440");
await consent(bob, () => card.getByRole("button", { name: "Link an account" }).click(), "main");
await bob.page.getByRole("region", { name: "Conversation", exact: true }).getByText("The change is made.").waitFor();

// Ada sees Bob's account and unlinks it. Bob's page updates.
await bob.page.getByRole("link", { name: "Accounts" }).click();
await bob.page.getByRole("region", { name: "Accounts at far" }).getByText("linked", { exact: true }).waitFor();
assert.equal(await bob.page.getByText("Other people's accounts").count(), 0, "a member does not see other people's accounts");
await page.reload();
const others = page.getByRole("region", { name: "Other people's accounts" });
await others.getByRole("row").filter({ hasText: "Bob" }).waitFor();
await picture(page, "accounts-1440");
for (const [viewport, colorScheme] of [[wide, "light"], [wide, "dark"], [narrow, "dark"], [narrow, "light"]]) {
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme });
  await settled(page);
  await accessible(page, `the accounts at ${viewport.width} px, ${colorScheme}`);
  const over = await excess(page);
  assert.ok(over <= 0, `the accounts at ${viewport.width} px are ${over} px too wide`);
}
await picture(page, "accounts-375");
await page.setViewportSize(wide);
await others.getByRole("button", { name: "Unlink Bob's account main at far" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Unlink" }).click();
await others.waitFor({ state: "detached" });
await bob.page.getByText("No account is linked").waitFor();

// Ada unlinks her own account.
await choose("office", "Unlink…");
await page.getByRole("dialog").getByRole("button", { name: "Unlink" }).click();
await row("office").waitFor({ state: "detached" });
await row("main").waitFor();

// Calls from Ada's other clients also wait for a login. The clients are the official TypeScript client, with and
// without a session, and the command line. Each call names an account that is not linked yet.
const { key } = await page.evaluate(async (workspace) => {
  const made = await fetch("/v1/keys", {
    method: "POST", headers: { "Content-Type": "application/json", "X-Workspace-Id": workspace }, body: JSON.stringify({ name: "clients", accounts: true }),
  });
  return made.json();
}, shared.id);
const resume = async (address, name) => {
  await refused(address);
  await consent(ada, async () => (await ada.context.newPage()).goto(address), name);
};
const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(createRequire(facts.npm + "/").resolve("@modelcontextprotocol/client")));
for (const [name, mode] of [["desk", "legacy"], ["phone", { pin: "2026-07-28" }]]) {
  const client = new Client({ name: "client", version: "1" }, { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    await resume(params.url, name);
    return { action: "accept" };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(facts.url + "/mcp/me"), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
  const { content } = await client.callTool({ name: `far_${name}__change`, arguments: {} }, { timeout: 180_000 });
  assert.equal(content[0].text, "alice", `the call of a client (${JSON.stringify(mode)})`);
  await client.close();
}
const command = spawn(facts.ropewalk, ["tool", "call", "far_shell__change", "--server", facts.url], { env: { HOME: process.env.HOME, ROPEWALK_API_KEY: key } });
const said = { out: "", notes: "" };
command.stdout.on("data", (data) => (said.out += data));
const exited = new Promise((resolve) => command.on("exit", resolve));
const address = await new Promise((resolve, reject) => {
  command.stderr.on("data", (data) => {
    said.notes += data;
    const address = /^http\S+$/m.exec(said.notes);
    if (address) resolve(address[0]);
  });
  void exited.then((status) => reject(new Error(`tool call exited with ${status}: ${said.notes}`)));
});
await resume(address, "shell");
assert.equal(await exited, 0, said.notes);
assert.equal(said.out.trim(), "alice");

// The app shows Bob's account a different definition of a tool. Ada sees whose account it is.
await bob.context.clearCookies({ domain: new URL(facts.issuer).hostname }); // so that he is no longer logged in as alice there
await bob.context.addCookies([{ name: "account", value: "carol", url: facts.issuer }]);
await bob.page.getByRole("button", { name: "Link an account" }).click();
dialog = bob.page.getByRole("dialog");
await consent(bob, () => dialog.getByRole("button", { name: "Continue" }).click(), "main");
await page.getByRole("link", { name: "Approvals" }).click();
await page.getByText("Calls with the account main of Bob cannot use the tool until an admin accepts the change.").waitFor();
await settled(page);
await accessible(page, "a tool that changed for one account");

await page.getByRole("link", { name: "Activity" }).click();
await page.getByText("The account office was unlinked from far").waitFor();
assert.deepEqual([...ada.problems, ...bob.problems], [], "the errors that the pages reported");
await browser.close();
