// Shared code for the browser tests. Each script gets its parameters as JSON in its first argument. It exits with
// status 0 if every check passed.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(process.cwd() + "/");
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const patience = 180_000; // the timeout in ms for every action; long enough for a busy machine

export const facts = JSON.parse(process.argv[2]);
export const wide = { width: 1440, height: 900 };
export const narrow = { width: 375, height: 812 };

const flags = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--disable-dev-shm-usage", "--disable-crash-reporter",
];

// launch starts a browser for several people. Each open({ browser }) then has its own cookies and storage.
export const launch = () => chromium.launch({ executablePath: facts.chromium, args: flags, headless: true, timeout: patience });

// open opens a page, in a new browser unless one is given. problems collects the page's errors.
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

// logIn logs a person in through the provider's page.
export async function logIn(page, account) {
  await page.goto(facts.url + "/");
  await page.getByRole("button", { name: "Continue with your organization" }).click();
  await page.waitForURL((url) => url.origin === facts.provider);
  await page.getByLabel("Account").fill(account);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((url) => url.origin === facts.url);
  await page.getByRole("button", { name: /^Account of/ }).waitFor();
}

// logOut logs the person out and waits until the page has reloaded.
export async function logOut(page) {
  await page.getByRole("button", { name: /^Account of/ }).first().click();
  const loaded = page.waitForEvent("load");
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await loaded;
  await page.getByRole("heading", { name: "Log in to Ropewalk" }).waitFor();
}

// eventually waits until holds returns true. It is for conditions that a locator cannot wait for.
export async function eventually(what, holds) {
  for (const until = Date.now() + patience; !(await holds()); await new Promise((resolve) => setTimeout(resolve, 50))) {
    assert.ok(Date.now() < until, `not within ${patience / 1000} s: ${what}`);
  }
}

// excess returns by how many pixels the page is too wide. If the page is still adapting to a new width, excess waits
// for it.
export async function excess(page) {
  const over = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
  await page.waitForFunction(`(${over})() <= 0`, undefined, { timeout: 10_000 }).catch(() => undefined);
  return page.evaluate(over);
}

// accessible fails if axe-core finds violations on the page.
export async function accessible(page, where) {
  const violations = await violationsOn(page);
  assert.deepEqual(violations, [], `axe-core on ${where}: ${JSON.stringify(violations, null, 1)}`);
}

// violationsOn returns axe-core's violations on the page, for all rules or only for the given ones. If there are any,
// it checks again a second later and returns that result, because the page may have changed during the first check, for
// example to fade in a notice.
export async function violationsOn(page, rules) {
  const found = await check(page, rules);
  if (found.length === 0) return found;
  await page.waitForTimeout(1_000);
  return check(page, rules);
}

// check runs axe-core once. It first waits until dialogs and menus have faded in, because their contrast is lower
// before that.
async function check(page, rules) {
  await page.waitForFunction(() => document.getAnimations().every((a) => a.playState !== "running" || a.effect?.getTiming().iterations === Infinity));
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  return page.evaluate(async (rules) => {
    // Apps' views are third-party pages.
    const { violations } = await globalThis.axe.run({ exclude: [["iframe"]] }, { iframes: false, ...(rules && { runOnly: rules }) });
    return violations.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any.map((a) => a.message).join("; ").slice(0, 200)}`) }));
  }, rules);
}

// picture takes a screenshot for the documentation, if pictures are wanted.
export async function picture(page, name) {
  if (!facts.pictures) return;
  mkdirSync(facts.pictures, { recursive: true });
  await page.screenshot({ path: join(facts.pictures, `${name}.png`), animations: "disabled" }); // transitions appear in their final state
}

// settled waits until the page has loaded its data and fonts.
export async function settled(page) {
  await page.evaluate(() => document.fonts.ready);
  await page.waitForFunction(() => !document.querySelector("[role=status][aria-label=Loading]"));
}

export { assert };
