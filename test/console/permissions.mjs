// A person allows, denies and revokes an app's permissions on the app's page.
import { accessible, assert, facts, open } from "./browser.mjs";

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
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
