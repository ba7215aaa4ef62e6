// Tests forms generated from the schemas of tools: every kind of field, its problems, and the values sent.
import { accessible, assert, eventually, facts, open } from "./browser.mjs";

const { context, page, problems } = await open({ timezoneId: "Europe/Berlin" });
const inputSchema = {
  type: "object", required: ["begins", "guests", "id"],
  properties: {
    begins: { type: "string", format: "date-time", default: "2026-07-01T10:00:00Z" },
    id: { type: "integer", title: "Account" },
    rate: { type: "number", title: "Rate" },
    guests: { type: "array", title: "Guests", items: { type: "object", required: ["name"], properties: { name: { type: "string", title: "Name" }, age: { type: "integer", title: "Age", minimum: 18 } } } },
    room: { title: "Room", oneOf: [
      { type: "object", title: "By number", properties: { number: { type: "integer", title: "Room number" } } },
      { type: "object", title: "By view", properties: { view: { enum: ["sea", "garden"], title: "View" } } },
    ] },
    labels: { type: "object", title: "Labels", additionalProperties: { type: "string" } },
  },
};
const answer = `{"content":[{"type":"text","text":"{\\"id\\": 9007199254740993}"}],"structuredContent":{"id":9007199254740993,"rate":1.0},"isError":false}`;
let sent = "";
await page.route("**/v1/tools", (route) => route.fulfill({ json: { tools: [{ name: "sample__book", server: "sample", tool: "book", definition: { name: "book", inputSchema } }] } }));
await page.route("**/v1/tools/call", (route) => {
  sent = route.request().postData();
  return route.fulfill({ contentType: "application/json", body: answer });
});
await page.goto(`${facts.url}/tools?tool=sample__book`);
const run = page.getByRole("button", { name: "Run tool" });

// Times are in the person's time zone. 10:00 UTC is noon in Berlin in summer.
const begins = page.getByLabel("begins");
await eventually("it begins at noon", async () => (await begins.inputValue()) === "2026-07-01T12:00");

// The first invalid field has the focus and an error.
await page.getByLabel("Account*").fill("9007199254740993");
await page.getByLabel("Rate", { exact: true }).fill("1.0");
await page.getByRole("group", { name: "Guests" }).getByRole("button", { name: "Add" }).click();
await run.click();
await page.getByText("This field is required.").waitFor();
await page.waitForFunction(() => document.activeElement.labels?.[0]?.textContent === "Name*");
await page.getByText("Check Guests, 1, Name.").waitFor();
await accessible(page, "a form with an invalid field");
await page.getByLabel("Name*", { exact: true }).fill("Ada");
await page.getByLabel("Age", { exact: true }).fill("17");
await run.click();
await page.getByText("Enter 18 or more.").waitFor();
await page.getByLabel("Age", { exact: true }).fill("36");
await begins.fill("2026-12-01T12:30");
await page.getByLabel("Type of Room").selectOption({ label: "By view" });
await page.getByLabel("View", { exact: true }).selectOption({ label: "sea" });
await page.getByLabel("New name in Labels").fill("floor");
await page.getByLabel("New name in Labels").press("Enter");
await page.getByRole("textbox", { name: "floor" }).fill("third");
await run.click();
await page.getByRole("heading", { name: "Result" }).waitFor();

// Numbers are sent and shown with all digits.
assert.match(sent, /"id":9007199254740993[,}]/);
assert.match(sent, /"rate":1\.0[,}]/);
const args = JSON.parse(sent).arguments;
assert.equal(new Date(args.begins).toISOString(), "2026-12-01T11:30:00.000Z");
assert.deepEqual([args.guests, args.room, args.labels], [[{ name: "Ada", age: 36 }], { view: "sea" }, { floor: "third" }]);
await page.getByText('"id": 9007199254740993').first().waitFor();
await page.getByText('"rate": 1.0').first().waitFor();
await accessible(page, "a form with every kind of field");
assert.deepEqual(problems, [], "the errors that the page reported");
await context.close();
