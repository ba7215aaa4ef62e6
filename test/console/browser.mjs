// What the tests in the browser share. A script gets what it is to know as JSON in its first argument;
// it ends with status 0 when everything held.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(process.cwd() + "/");
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const patience = 180_000; // of anything that a page or a browser does, also on a busy machine

export const facts = JSON.parse(process.argv[2]);
export const wide = { width: 1440, height: 900 };
export const narrow = { width: 375, height: 812 };

const flags = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--disable-dev-shm-usage", "--disable-crash-reporter",
];

// launch starts a browser for several people: each open({ browser }) has cookies and storage of its own.
export const launch = () => chromium.launch({ executablePath: facts.chromium, args: flags, headless: true, timeout: patience });

// open opens a page, in a browser of its own unless one is given. Whatever the page complains about is in problems.
export async function open({ viewport = wide, colorScheme = "light", browser, ...rest } = {}) {
  const options = { viewport, colorScheme, ...rest };
  const context = browser ? await browser.newContext(options) : await chromium.launchPersistentContext(`${facts.profile}-${Math.random().toString(36).slice(2)}`, {
    executablePath: facts.chromium, args: flags, headless: true, timeout: patience, ...options,
  });
  context.setDefaultTimeout(patience);
  const page = context.pages()[0] ?? (await context.newPage());
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) problems.push(message.text());
  });
  return { context, page, problems };
}

// logIn logs a person in at the provider's own page.
export async function logIn(page, account) {
  await page.goto(facts.url + "/");
  await page.getByRole("button", { name: "Continue with your organization" }).click();
  await page.waitForURL((url) => url.origin === facts.provider);
  await page.getByLabel("Account").fill(account);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((url) => url.origin === facts.url);
  await page.getByRole("button", { name: /^Account of/ }).waitFor();
}

// accessible fails when axe-core finds anything on what is shown now.
export async function accessible(page, where) {
  const violations = await violationsOn(page);
  assert.deepEqual(violations, [], `axe-core on ${where}: ${JSON.stringify(violations, null, 1)}`);
}

// violationsOn is what axe-core finds on what is shown, by all of its rules or these, once a dialog or a menu
// that appears has its full contrast.
export async function violationsOn(page, rules) {
  await page.waitForFunction(() => document.getAnimations().every((a) => a.playState !== "running" || a.effect?.getTiming().iterations === Infinity));
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  return page.evaluate(async (rules) => {
    // Views of apps are frames of somebody else's pages.
    const { violations } = await globalThis.axe.run({ exclude: [["iframe"]] }, { iframes: false, ...(rules && { runOnly: rules }) });
    return violations.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any.map((a) => a.message).join("; ").slice(0, 200)}`) }));
  }, rules);
}

// picture takes a screenshot for the documents, when they are wanted.
export async function picture(page, name) {
  if (!facts.pictures) return;
  mkdirSync(facts.pictures, { recursive: true });
  await page.screenshot({ path: join(facts.pictures, `${name}.png`), animations: "disabled" }); // transitions at their end
}

// settled waits until the page asks for nothing and its fonts are there.
export async function settled(page) {
  await page.evaluate(() => document.fonts.ready);
  await page.waitForFunction(() => !document.querySelector("[role=status][aria-label=Loading]"));
}

export { assert };
