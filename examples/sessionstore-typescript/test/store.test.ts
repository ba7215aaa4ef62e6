// Tests what the conformance kit cannot see: several processes, restarts, and what stays in the file.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Store } from "../src/store.js";

const minute = { seconds: 60, nanos: 0 };
const moment = { seconds: 0, nanos: 1_000_000 };

function session(id: string) {
  const at = { seconds: 1_700_000_000, nanos: 5_000_000 };
  return {
    id,
    subject: "user_01",
    issuer: "https://issuer.example",
    workspaceId: "ws",
    protocolVersion: "2025-11-25",
    clientInfo: { name: "test", version: "1" },
    createdAt: at,
    lastAccessedAt: at,
    owner: "",
    state: "",
  };
}

function temporary(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "store"));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

test("sessions outlive the process", async (t) => {
  const directory = temporary(t);
  const first = new Store({ directory, waitForDisk: true });
  await first.put(session("a"), minute);
  await first.close();
  const second = new Store({ directory, waitForDisk: true });
  t.after(() => second.close());
  assert.deepEqual(second.get("a"), session("a"));
});

test("another process's writes are visible at once", async (t) => {
  const directory = temporary(t);
  const store = new Store({ directory, waitForDisk: false });
  t.after(() => store.close());
  await store.put(session("a"), minute);
  const other = `
    const { Store } = await import(${JSON.stringify(new URL("../src/store.js", import.meta.url).href)});
    const store = new Store({ directory: ${JSON.stringify(directory)}, waitForDisk: false });
    if (store.get("a").subject !== "user_01") process.exit(1);
    await store.put(${JSON.stringify(session("b"))}, { seconds: 60, nanos: 0 });
    await store.delete("a");
    process.kill(process.pid, "SIGKILL");`;
  assert.throws(() => execFileSync(process.execPath, ["--input-type=module", "-e", other]), { signal: "SIGKILL" });
  assert.equal(store.get("b").id, "b");
  assert.throws(() => store.get("a"), /no such session/);
  await store.touch([{ id: "a", lastAccessedAt: null, ttl: minute }]);
  assert.throws(() => store.get("a"), /no such session/);
});

test("expired sessions are removed from the file", async (t) => {
  const store = new Store({ directory: temporary(t), waitForDisk: false });
  t.after(() => store.close());
  await Promise.all(Array.from({ length: 2_500 }, (_, i) => store.put(session(`s${i}`), i % 2 === 0 ? moment : minute)));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(await store.sweep(), 1_250);
  assert.equal(await store.sweep(), 0);
  assert.equal(store.get("s1").id, "s1");
});

test("a touch without a time keeps the previous one", async (t) => {
  const store = new Store({ directory: temporary(t), waitForDisk: false });
  t.after(() => store.close());
  await store.put(session("a"), minute);
  await store.touch([{ id: "a", lastAccessedAt: null, ttl: minute }]);
  assert.deepEqual(store.get("a"), session("a"));
});
