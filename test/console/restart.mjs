// The server is killed during an answer, started again, and upgraded while the page stays open.
import { accessible, assert, facts, open } from "./browser.mjs";

const { context, page } = await open();
await page.goto(`${facts.url}/chat`);
const message = page.getByLabel("Message", { exact: true });
const thread = page.getByRole("region", { name: "Conversation", exact: true });
await message.fill("tell me all");
await message.press("Enter");
await thread.getByText("The first half").waitFor();

assert.ok((await fetch(`${facts.control}/kill`)).ok);
const away = page.getByText("The connection to the server was lost.");
await away.waitFor();
await thread.getByText("The connection was lost. Everything received until then has been kept.").waitFor();
await thread.getByText("The first half").waitFor();
await accessible(page, "a page whose server is unavailable");

assert.ok((await fetch(`${facts.control}/start`)).ok);
await away.waitFor({ state: "detached" });
await thread.getByText("tell me all").first().waitFor();

// The page receives events from the new process.
await page.getByRole("link", { name: "Activity" }).click();
await page.getByText("live", { exact: true }).waitFor();
const stopped = await page.evaluate(async () => (await fetch("/v1/apps/sample/stop", { method: "POST" })).status);
assert.equal(stopped, 200);
await page.getByText("sample was stopped").first().waitFor();

// The conversation still exists and can be continued.
await page.getByRole("link", { name: "Chat" }).click();
await page.locator("a[href*='/chat/conv_']").first().click();
await thread.getByText("tell me all").first().waitFor();
await message.fill("go on");
await message.press("Enter");
await thread.getByText("The other half.").waitFor();
await page.reload();
await thread.getByText("The other half.").waitFor();
await thread.getByText("tell me all").first().waitFor();

// The server is upgraded while the page is open. The script that the page loads next no longer exists on the server, so
// the page reloads.
await page.getByRole("link", { name: "Apps" }).click();
await page.getByRole("button", { name: "Install app" }).waitFor();
await page.route("**/assets/Install-*.js", (route) => route.fulfill({ status: 404 }));
await page.route(`${facts.url}/`, (route) => route.fulfill({ contentType: "text/html", body: '<script type="module" src="/assets/index-newer.js"></script>' }), { times: 1 });
const loaded = page.waitForEvent("load");
await page.getByRole("button", { name: "Install app" }).click();
await loaded;
await page.unrouteAll();
await page.goto(`${facts.url}/apps`);
await page.getByRole("button", { name: "Install app" }).click();
await page.getByRole("tab", { name: "Server path" }).waitFor();

// Without an upgrade, the page requests a script again after it fails to load. Nothing on the page is lost.
await page.goto(`${facts.url}/apps`);
await page.route("**/assets/Install-*.js", (route) => route.fulfill({ status: 503 }));
await page.getByRole("button", { name: "Install app" }).click();
await page.waitForResponse((response) => /Install-.*\.js$/.test(response.url()) && response.status() === 503);
await page.getByRole("link", { name: "Apps" }).waitFor();
await page.unrouteAll();
await page.getByRole("tab", { name: "Server path" }).waitFor();
await context.close();
