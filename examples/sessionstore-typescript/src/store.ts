// Keeps the sessions in an LMDB file. Several processes may have it open at once, as they do while a server replaces
// one process with the next. Each transaction is atomic across all of them.

import { createHash } from "node:crypto";
import { open, type RootDatabase } from "lmdb";
import type { Record__Output } from "../gen/ropewalk/sessionstore/v1/Record.js";
import type { SessionTouch__Output } from "../gen/ropewalk/sessionstore/v1/SessionTouch.js";
import type { Duration__Output } from "../gen/google/protobuf/Duration.js";
import type { Timestamp__Output } from "../gen/google/protobuf/Timestamp.js";
import { invalid, notFound } from "./errors.js";
import { warn } from "./log.js";
import type { Settings } from "./settings.js";

/** A session and the end of its lifetime, in milliseconds since 1970. */
interface Entry {
  record: Record__Output;
  expires: number;
}

const SWEEP_EVERY = 60_000; // milliseconds
const SWEEP_AT_ONCE = 1_000; // entries to check before other calls get their turn

/** The session store. ropewalk.sessionstore.v1 documents its methods. */
export class Store {
  readonly #db: RootDatabase<Entry, Buffer>;
  readonly #waitForDisk: boolean;
  readonly #sweeper: NodeJS.Timeout;

  /** Opens the file in settings.directory, or creates it if it does not exist. */
  constructor(settings: Settings, sweepEvery = SWEEP_EVERY) {
    this.#db = open<Entry, Buffer>({ path: settings.directory, noSubdir: false, keyEncoding: "binary" });
    this.#waitForDisk = settings.waitForDisk;
    this.#sweeper = setInterval(() => void this.sweep().catch(reportSweep), sweepEvery).unref();
  }

  async put(record: Record__Output | null, ttl: Duration__Output | null): Promise<void> {
    if (record === null || record.id === "") throw invalid("a session needs an id");
    const entry = { record, expires: Date.now() + lifetime(ttl) };
    await this.#write(() => void this.#db.put(key(record.id), entry));
  }

  get(id: string): Record__Output {
    this.#db.resetReadTxn(); // an older snapshot would hide what another process has written since
    const entry = this.#live(key(id));
    if (entry === undefined) throw notFound("no such session");
    return entry.record;
  }

  async touch(touches: SessionTouch__Output[]): Promise<void> {
    const steps = touches.map((t) => ({ key: key(t.id), at: t.lastAccessedAt, expires: Date.now() + lifetime(t.ttl) }));
    if (steps.length === 0) return;
    await this.#write(() => {
      for (const { key, at, expires } of steps) {
        const entry = this.#live(key);
        if (entry === undefined) continue;
        const lastAccessedAt = newer(entry.record.lastAccessedAt, at);
        void this.#db.put(key, { record: { ...entry.record, lastAccessedAt }, expires });
      }
    });
  }

  async delete(id: string): Promise<void> {
    await this.#write(() => void this.#db.remove(key(id)));
  }

  /** Removes expired sessions, and returns how many. */
  async sweep(): Promise<number> {
    let removed = 0;
    let start: Buffer | undefined;
    for (;;) {
      const some = [...this.#db.getRange({ start, limit: SWEEP_AT_ONCE, snapshot: false })];
      const over = some.filter(({ value }) => value.expires <= Date.now());
      if (over.length > 0) {
        removed += await this.#db.transaction(() => {
          const still = over.filter(({ key }) => (this.#db.get(key)?.expires ?? Infinity) <= Date.now());
          for (const { key } of still) void this.#db.remove(key);
          return still.length;
        });
      }
      const last = some.at(-1);
      if (some.length < SWEEP_AT_ONCE || last === undefined) return removed;
      start = Buffer.concat([last.key, Buffer.of(0)]); // the smallest key that comes after it
      await new Promise(setImmediate);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await this.#db.flushed;
    await this.#db.close();
  }

  #live(key: Buffer): Entry | undefined {
    const entry = this.#db.get(key);
    return entry !== undefined && entry.expires > Date.now() ? entry : undefined;
  }

  /** Runs action atomically, even with respect to other processes. */
  async #write(action: () => void): Promise<void> {
    await this.#db.transaction(action);
    if (this.#waitForDisk) await this.#db.flushed;
  }
}

/** Returns the key of an id. An id can be any text of any length, so the key is its digest. */
function key(id: string): Buffer {
  return createHash("sha256").update(id).digest();
}

/** Returns a lifetime in milliseconds. Throws if it is not positive. */
function lifetime(ttl: Duration__Output | null): number {
  const milliseconds = ttl === null ? 0 : ttl.seconds * 1_000 + ttl.nanos / 1_000_000;
  if (milliseconds <= 0) throw invalid("the ttl of a session must be positive");
  return milliseconds;
}

function newer(a: Timestamp__Output | null, b: Timestamp__Output | null): Timestamp__Output | null {
  if (a === null || b === null) return a ?? b;
  return b.seconds > a.seconds || (b.seconds === a.seconds && b.nanos > a.nanos) ? b : a;
}

function reportSweep(problem: unknown): void {
  warn("Expired sessions could not be removed; the next sweep tries again.", { error: String(problem) });
}
