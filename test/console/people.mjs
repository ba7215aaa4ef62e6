// Two people log in through the identity provider and use the server at the same time. All of Ada's data contains the
// word harbour, and all of Bob's contains the word kestrel.
import { accessible, assert, eventually, facts, launch, logIn, logOut, open, settled } from "./browser.mjs";

const browser = await launch();

// admin sends a request with the owner's API key.
async function admin(method, path, body) {
  const response = await fetch(facts.url + path, {
    method, headers: { Authorization: `Bearer ${facts.key}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
}

// visitor opens a browser profile and records every /v1 response. It skips event streams, and the registry, which is
// the same for everyone.
async function visitor() {
  const at = await open({ browser });
  at.answers = [];
  at.page.on("response", (response) => {
    const type = response.headers()["content-type"] ?? "";
    const { pathname } = new URL(response.url());
    if (!pathname.startsWith("/v1/") || pathname.startsWith("/v1/registries/") || !type.includes("json")) return;
    at.answers.push(response.text().then((text) => `${response.url()}: ${text}`, () => ""));
  });
  return at;
}

// workspace switches the workspace without a reload.
async function workspace(page, name) {
  await page.evaluate(() => { window.stays = true; });
  await page.getByRole("button", { name: /^Workspace/ }).click();
  await page.getByRole("menuitem", { name }).click();
  await page.getByRole("button", { name: /^Workspace/ }).filter({ hasText: name }).waitFor();
  assert.ok(await page.evaluate(() => window.stays), "the page reloaded");
}

async function say(page, message, answer) {
  await page.goto(facts.url + "/chat");
  const field = page.getByLabel("Message", { exact: true });
  await field.fill(message);
  await field.press("Enter");
  const thread = page.getByRole("region", { name: "Conversation", exact: true });
  await thread.getByText(answer).waitFor();
  await page.waitForURL(/\/chat\/.+/);
  return new URL(page.url()).pathname;
}

// nothingOf visits every screen. It fails if the other person's word is on a screen or in a response.
async function nothingOf(word, { page, answers }, who) {
  await page.goto(facts.url + "/chat");
  const links = page.getByRole("navigation", { name: "Main", exact: true }).getByRole("link");
  await links.filter({ hasText: "Usage" }).waitFor();
  for (let i = 0; i < (await links.count()); i++) {
    const name = await links.nth(i).innerText();
    await links.nth(i).click();
    await page.locator("main :is(h1, aside)").first().waitFor();
    await settled(page);
    const shown = await page.evaluate(() => document.documentElement.outerHTML);
    assert.ok(!shown.toLowerCase().includes(word), `${name} of ${who} shows ${word}`);
  }
  const sent = (await Promise.all(answers)).filter((answer) => answer.toLowerCase().includes(word));
  assert.deepEqual(sent, [], `responses to ${who} contain ${word}`);
}

const ada = await visitor();
const bob = await visitor();

// The login goes to the provider's page and back. The console shows the person's name and email.
await ada.page.goto(facts.url + "/");
await ada.page.getByRole("button", { name: "Continue with your organization" }).waitFor();
await settled(ada.page);
await accessible(ada.page, "the login with a provider");
await logIn(ada.page, "ada");
await logIn(bob.page, "bob");
for (const [{ page }, name, email] of [[ada, "Ada", "ada@example.com"], [bob, "Bob", "bob@example.com"]]) {
  await page.getByRole("button", { name: `Account of ${name} ${email}` }).click();
  await page.getByText(`${email} · member`).waitFor();
  await page.keyboard.press("Escape");
}

// Ada is an admin of the shared workspace, and Bob is a member.
const { users } = await admin("GET", "/v1/users");
const shared = (await admin("GET", "/v1/workspaces")).workspaces.find((w) => !w.personalOf);
await admin("POST", `/v1/workspaces/${shared.id}/members`, { user: users.find((u) => u.email === "ada@example.com").id, role: "admin" });
await ada.page.reload();
await ada.page.getByRole("button", { name: /^Workspace/ }).filter({ hasText: "admin" }).waitFor();
await ada.page.getByRole("link", { name: "People" }).waitFor();
await bob.page.getByRole("button", { name: /^Workspace/ }).filter({ hasText: "member" }).waitFor();
assert.equal(await bob.page.getByRole("link", { name: "People" }).count(), 0, "a member does not manage people");

const answers = { harbour: "The harbour cruise leaves at noon.", kestrel: "A kestrel wants a box with an open front." };

// In the shared workspace each has their own conversations.
await say(ada.page, "When does the harbour cruise leave?", answers.harbour);
const bobs = await say(bob.page, "What nest does a kestrel want?", answers.kestrel);
await ada.page.getByRole("link", { name: /Harbour cruise/ }).waitFor();
await bob.page.getByRole("link", { name: /Kestrel nest box/ }).waitFor();

// In the shared workspace, each person has their own conversations.
for (const [{ page }, name, word] of [[ada, "Ada", "harbour"], [bob, "Bob", "kestrel"]]) {
  await page.goto(facts.url + "/apps");
  await page.getByText("@hotel/porter").waitFor();
  await workspace(page, new RegExp(name));
  await page.getByText("No apps yet").waitFor();
  await page.getByRole("button", { name: "Install app" }).click();
  await page.getByLabel("Search the registries").fill(word);
  await page.getByRole("dialog").getByRole("listitem").filter({ hasText: `@hotel/${word}` }).getByRole("button", { name: "Install", exact: true }).click();
  await page.getByRole("heading", { name: new RegExp(`^${word}`) }).waitFor();
  await page.getByRole("link", { name: "Activity" }).click();
  await page.getByText(`${word} was installed from`).waitFor();
  await say(page, `Tell me more of the ${word}`, answers[word]);
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByText("Tokens per day").waitFor();
}

// Switching back shows only the shared workspace. The conversation that was open in the other workspace is gone, too.
await say(bob.page, "Where do kestrels live?", answers.kestrel);
await workspace(bob.page, /default/i);
await bob.page.waitForURL(/\/w\/ws_default\/chat$/);
await bob.page.getByRole("link", { name: /Kestrel nest box/ }).waitFor();
await eventually("only the conversations of the shared workspace are listed", async () => (await bob.page.getByRole("link", { name: /nest box/ }).count()) === 1);
await workspace(ada.page, /default/i);
await ada.page.getByRole("link", { name: "Apps" }).click();
await ada.page.getByText("@hotel/porter").waitFor();
await eventually("only the apps of the shared workspace are listed", async () => (await ada.page.getByText("@hotel/harbour").count()) === 0);

// A search finds only a person's own conversations. The address of another person's conversation shows nothing.
await ada.page.goto(facts.url + "/chat");
await ada.page.getByLabel("Search conversations").fill("noon");
await ada.page.getByRole("link", { name: /Harbour cruise/ }).waitFor();
await ada.page.getByLabel("Search conversations").fill("open front");
await ada.page.getByText("No matches").waitFor();
await ada.page.goto(facts.url + bobs);
await ada.page.getByText("Conversation not found").waitFor();
await settled(ada.page);
await accessible(ada.page, "another person's conversation");

for (const [at, word, who] of [[ada, "kestrel", "Ada"], [bob, "harbour", "Bob"]]) {
  await nothingOf(word, at, `${who} in the shared workspace`);
  await workspace(at.page, new RegExp(who));
  await nothingOf(word, at, `${who} in their own workspace`);
  await workspace(at.page, /default/i);
}

// Bob's call is waiting for approval. He sees it but cannot decide. Ada is an admin of the shared workspace, so she can
// decide there, but not from her own workspace.
const waiting = await say(bob.page, "greet the kestrel", "greet the kestrel");
await bob.page.getByRole("link", { name: /^Approvals.*1/ }).click();
await bob.page.getByRole("heading", { name: "porter__greet" }).waitFor();
await bob.page.getByText("A workspace admin will decide.").waitFor();
await workspace(ada.page, /Ada/);
await ada.page.getByRole("link", { name: /^Approvals/ }).click();
await ada.page.getByText("Nothing is waiting for approval").waitFor();
await workspace(ada.page, /default/i);
await ada.page.getByText("Bob wants to call this tool").waitFor();
await ada.page.getByRole("button", { name: "Allow once" }).click();
await ada.page.getByText("Nothing is waiting for approval").waitFor();
await bob.page.getByRole("link", { name: "Chat" }).click();
await bob.page.locator(`a[href="${waiting}"]`).click(); // by its address, because the title arrives later
await bob.page.getByRole("region", { name: "Conversation", exact: true }).getByText("The kestrel was greeted.").waitFor();

// In the shared workspace, its admin sees everyone's usage, and Bob sees only his own.
await ada.page.goto(facts.url + "/usage");
await ada.page.getByRole("tab", { name: "By person" }).click();
await ada.page.getByRole("cell", { name: /Bob|bob@/ }).waitFor();
await bob.page.goto(facts.url + "/usage");
await bob.page.getByText("How much you have used models").waitFor();
assert.equal(await bob.page.getByRole("tab", { name: "By person" }).count(), 0);
assert.deepEqual([...ada.problems, ...bob.problems], [], "the errors that the pages reported");

// Bob logs out, and Ada logs in with the same browser profile. None of Bob's data remains.
await bob.page.goto(facts.url + "/chat");
await logOut(bob.page);
assert.doesNotMatch(await bob.page.evaluate(() => JSON.stringify([localStorage, sessionStorage])), /kestrel|bob@|ws_/i, "data left in the browser after the logout");
await bob.context.clearCookies({ domain: new URL(facts.provider).hostname }); // the provider's own session
await logIn(bob.page, "ada");
await bob.page.getByRole("link", { name: /Harbour cruise/ }).waitFor();
await bob.page.goBack().catch(() => undefined);
await bob.page.goto(facts.url + bobs);
await bob.page.getByText("Conversation not found").waitFor();
await workspace(bob.page, /Ada/); // in the shared workspace, its admin has seen the waiting call
await bob.page.goto(facts.url + "/chat"); // ends the requests of the shared workspace
bob.answers.length = 0;
await nothingOf("kestrel", bob, "Ada after Bob in one profile");

// The session ends in another tab. This page then shows the login and keeps nothing of a failed run.
await bob.page.goto(facts.url + "/chat");
await bob.page.getByLabel("Message", { exact: true }).fill("a broken kestrel of the harbour");
await bob.page.getByLabel("Message", { exact: true }).press("Enter");
await bob.page.getByRole("alert").waitFor();
await bob.page.evaluate(() => fetch("/v1/auth/logout", { method: "POST" }));
await bob.page.getByRole("heading", { name: "Log in to Ropewalk" }).waitFor();
await bob.page.getByLabel("API key or token").fill(facts.key);
await bob.page.getByRole("button", { name: "Log in", exact: true }).click();
await bob.page.getByRole("button", { name: /^Account of/ }).waitFor();
await settled(bob.page);
assert.ok(!(await bob.page.locator("body").innerText()).includes("broken kestrel"), "the owner sees Ada's run");
await browser.close();
