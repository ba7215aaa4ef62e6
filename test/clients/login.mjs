// A new user opens the server's address in a browser, logs in through the identity provider, and sees their own
// account. Run node login.mjs <facts as JSON> in the directory that contains node_modules.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const facts = JSON.parse(process.argv[2]);
const patience = 180_000; // the timeout in ms for every action; long enough for a busy machine
const { chromium } = createRequire(process.cwd() + "/")("playwright-core");
const context = await chromium.launchPersistentContext(facts.profile, {
  executablePath: facts.chromium, headless: true, timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync", "--disable-dev-shm-usage"],
});
context.setDefaultTimeout(patience);
const page = context.pages()[0] ?? (await context.newPage());

// A failed login ends on a page that reports the failure.
await page.goto(facts.url + "/v1/auth/callback?state=unknown&code=x");
await page.getByText("The login failed.").waitFor();

await page.goto(facts.url + "/");
await page.getByRole("button", { name: "Continue with your organization" }).click();
await page.getByLabel("Account").fill("ada");
await page.getByRole("button", { name: "Sign in" }).click();

// After the login, the user is back in the console. The user is an admin of the organization and a member of the
// workspace that new people join.
await page.getByRole("button", { name: /^Account of/ }).click();
await page.getByText("ada@example.com · admin").waitFor();
await page.keyboard.press("Escape");
await page.getByRole("link", { name: "Apps" }).click();
await page.getByText("filesystem").first().waitFor();
await page.getByRole("link", { name: "People" }).click();
await page.getByText("ada@example.com").first().waitFor();
assert.equal(new URL(page.url()).origin, facts.url);

// The snippets on the Connect screen use an address that needs no header.
await page.getByRole("link", { name: "Connect" }).click();
await page.getByText(/\/mcp\/(me|ws_)/).first().waitFor();
await context.close();
