// A first visit: how much comes over the network, and when the chat can be used.
import { assert, facts, open } from "./browser.mjs";

const limit = 300_000;
const usableWithin = 1_000;

const { context, page, problems } = await open();
const network = await context.newCDPSession(page);
await network.send("Network.enable");
const requests = new Map();
network.on("Network.responseReceived", ({ requestId, response }) => requests.set(requestId, { url: response.url, encoding: response.headers["content-encoding"] ?? response.headers["Content-Encoding"], bytes: response.encodedDataLength }));
network.on("Network.dataReceived", ({ requestId, encodedDataLength }) => { const r = requests.get(requestId); if (r) r.bytes += encodedDataLength; });
network.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => { const r = requests.get(requestId); if (r) r.bytes = encodedDataLength; });

await page.goto(facts.url + "/");
await page.getByRole("heading", { level: 1 }).waitFor();
await page.getByLabel("Model", { exact: true }).waitFor();
await page.waitForFunction(() => document.fonts.status === "loaded" && !document.querySelector("[role=status][aria-label=Loading]"));
await page.waitForTimeout(500); // nothing else is asked for
const all = [...requests.values()];
const total = all.reduce((sum, r) => sum + r.bytes, 0);
const elsewhere = all.filter((r) => !r.url.startsWith(facts.url));
const plain = all.filter((r) => /\.(js|css)$|\/chat$/.test(new URL(r.url).pathname) && r.encoding !== "br");
console.log(`first load: ${all.length} requests, ${total} bytes\n` + all.map((r) => `${String(r.bytes).padStart(8)} ${r.encoding ?? ""} ${new URL(r.url).pathname}`).join("\n"));
assert.deepEqual(elsewhere, [], "requests to elsewhere");
assert.deepEqual(plain, [], "scripts and styles that did not come with brotli");
assert.ok(total <= limit, `the first load takes ${total} bytes, at most ${limit} are allowed`);
assert.deepEqual(problems, []);
await context.close();

// The first visit again, in a new profile, on a processor that is four times slower.
const slow = await open();
const cpu = await slow.context.newCDPSession(slow.page);
await cpu.send("Emulation.setCPUThrottlingRate", { rate: 4 });
await slow.page.addInitScript(() => {
  const look = new MutationObserver(() => {
    const field = document.querySelector("textarea[aria-label=Message]");
    if (!field) return;
    look.disconnect();
    // It is usable when what is typed has been taken in by the page and shown.
    requestAnimationFrame(() => {
      field.focus();
      document.execCommand("insertText", false, "hello");
      requestAnimationFrame(() => requestAnimationFrame(() => {
        const send = document.querySelector("button[aria-label=Send]");
        console.log(`usable ${JSON.stringify({ at: performance.now(), text: field.value, send: send ? !send.disabled : null })}`);
      }));
    });
  });
  look.observe(document, { childList: true, subtree: true });
});
// Nothing is asked of the page meanwhile: that would take its time.
const told = slow.page.waitForEvent("console", { predicate: (message) => message.text().startsWith("usable ") });
await slow.page.goto(facts.url + "/chat", { waitUntil: "commit" });
const usable = JSON.parse((await told).text().slice("usable ".length));
console.log(`chat usable after ${Math.round(usable.at)} ms on a processor that is four times slower`);
assert.equal(usable.text, "hello");
assert.equal(usable.send, true, "what was typed can be sent");
// The navigation and the conversations come when it is usable: they take nothing of what was typed, and it can be sent.
await slow.page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Apps" }).waitFor();
await slow.page.getByRole("searchbox", { name: "Search conversations" }).waitFor();
assert.equal(await slow.page.getByLabel("Message", { exact: true }).inputValue(), "hello");
await slow.page.getByRole("button", { name: "Send" }).click();
await slow.page.getByText("Yes.", { exact: true }).waitFor();
assert.deepEqual(slow.problems, []);
if (facts.strict) assert.ok(usable.at <= usableWithin, `the chat was usable after ${usable.at} ms, at most ${usableWithin} are allowed`);
await slow.context.close();
