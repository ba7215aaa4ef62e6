// A person allows, denies and revokes an app's permissions on the app's page.
import { accessible, assert, facts, narrow, open, wide } from "./browser.mjs";

const { context, page, problems } = await open();
await page.goto(`${facts.url}/apps/porter?tab=permissions`);
await page.getByText("No decisions yet").waitFor();
await page.getByLabel("Access").selectOption({ label: "Connect to a service on this machine" });
await page.getByLabel("Target").fill("localhost:6379");
await page.getByRole("button", { name: "Allow", exact: true }).click();
const row = page.getByRole("row").filter({ hasText: "localhost:6379" });
await row.getByText("allowed").waitFor();
await accessible(page, "the permissions of an app");
const decided = await page.evaluate(async () => (await (await fetch("/v1/apps/porter/permissions")).json()).permissions);
assert.deepEqual(decided.map((p) => [p.kind, p.state]), [["net", "granted"]]);
await row.getByRole("button", { name: "Revoke" }).click();
await page.getByText("No decisions yet").waitFor();

// After a failed call, the tool's page says what the sandbox denied. A wide page shows the list of tools again after it was narrow.
await page.route("**/v1/apps/porter/permissions", async (route) => {
  const response = await route.fetch(), at = new Date().toISOString();
  await route.fulfill({ response, json: { ...(await response.json()), denials: [{ kind: "net", target: "localhost:8000", count: 1, first: at, last: at, observed: true }] } });
});
await page.route("**/v1/tools/call", (route) => route.fulfill({ json: { content: [{ type: "text", text: "connection refused" }], isError: true } }));
await page.goto(`${facts.url}/tools`);
await page.getByLabel("Search tools").fill("porter");
const tool = page.getByRole("region", { name: "Tools" }).getByRole("button");
await tool.filter({ hasText: "porter" }).click();
await page.setViewportSize(narrow);
await tool.waitFor({ state: "hidden" });
await page.setViewportSize(wide);
await tool.waitFor();
await page.getByRole("button", { name: "Run tool" }).click();
await page.getByText("The sandbox has denied porter access to localhost:8000.").waitFor();
await accessible(page, "a failed call");
await page.getByRole("main").getByRole("link", { name: "Permissions" }).click();
await page.getByRole("tab", { name: "Permissions", selected: true }).waitFor();
await page.unrouteAll({ behavior: "ignoreErrors" });
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
