// Installs the servers in servers.json and imports the files in ../pasted, as a new user would: with the command line,
// from an empty home, answering yes to each question. Each server must run (initialize, tools/list, and one call that
// needs the granted permissions) or say in one sentence what the machine lacks. The script downloads everything, so
// `make test` does not run it.
//
//   node test/servers/run.mjs ROPEWALK [--user UID] [--only REGEX] [--jobs N] [--no-pasted]
//
// --user runs the server as an ordinary user whose node and uv are in the home. This requires root.
import { execFile, spawn } from "node:child_process";
import { chownSync, copyFileSync, chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { user: { type: "string" }, only: { type: "string", default: "" }, jobs: { type: "string", default: "2" }, "no-pasted": { type: "boolean" } },
});
const here = import.meta.dirname;
const root = mkdtempSync(join(tmpdir(), "new-")); // short like a user's home: browsers create sockets deep below it
const home = join(root, "h");
const demo = join(root, "demo");
const credentials = flags.user ? { uid: Number(flags.user), gid: Number(flags.user) } : {};
const program = join(root, "ropewalk");
const running = [];

const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^(NPM_CONFIG_|PIP_|UV_|SSL_CERT_|NODE_EXTRA_CA_CERTS$|.*_PROXY$)/i.test(name)),
);
Object.assign(environment, {
  HOME: home, LANG: "C.UTF-8", UV_SYSTEM_CERTS: "1", UV_NATIVE_TLS: "1",
  PATH: flags.user ? `${home}/.local/bin:/usr/local/bin:/usr/bin:/bin` : process.env.PATH,
});

/** Runs a program, and returns its output and exit status. */
function run(file, args, { as = credentials, timeout = 600_000, input = "" } = {}) {
  return new Promise((done) => {
    const child = execFile(file, args, { ...as, env: environment, cwd: home, timeout, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
      done({ ok: !error, out: stdout, said: (stderr + (error?.killed ? "\nno answer within the time" : "")).trim() }),
    );
    child.stdin.on("error", () => {}); // a program that fails early does not read it
    child.stdin.end(input);
  });
}

async function must(file, args, options) {
  const { ok, out, said } = await run(file, args, options);
  if (!ok) throw new Error(`${file} ${args.join(" ")}: ${said || out}`);
  return out;
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/** Starts a program that runs until the end. */
function start(file, args, as = credentials) {
  const child = spawn(file, args, { ...as, env: environment, cwd: home, stdio: ["ignore", "pipe", "pipe"] }).once("error", (error) => (child.text += error));
  child.text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (child.text += data));
  running.push(child);
  return child;
}

async function until(what, condition) {
  for (let i = 0; i < 600; i++) {
    if (await condition()) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`${what} within a minute`);
}

/** Creates the home, the runtimes in it, the documents and the services. */
async function prepare() {
  chmodSync(root, 0o755);
  for (const dir of [home, demo, join(demo, "docs"), join(demo, "repo"), join(demo, "sheets"), join(root, "pg")]) mkdirSync(dir);
  copyFileSync(resolve(positionals[0]), program);
  chmodSync(program, 0o755);
  writeFileSync(join(demo, "docs/note.txt"), "a note\n");
  writeFileSync(join(demo, "repo/main.py"), "print('a repository')\n");
  if (flags.user) for (const dir of [home, demo, ...readdirSync(demo, { recursive: true }).map((f) => join(demo, f))]) chownSync(dir, credentials.uid, credentials.gid);
  await must("git", ["-C", join(demo, "repo"), "init", "-q", "-b", "main"]);
  await must("/usr/bin/python3", ["-c", `import sqlite3; c = sqlite3.connect("${demo}/data.db"); c.execute("create table person (name)"); c.execute("insert into person values ('Ada')"); c.commit()`]);
  if (flags.user) {
    await must("npm", ["install", "-g", "--prefix", join(home, ".local"), "node@22", "npm@10"]);
    await must("/usr/bin/python3", ["-m", "pip", "install", "-q", "--user", "--break-system-packages", "uv"]);
  }
  const [redis, postgres] = [await freePort(), await freePort()];
  start("redis-server", ["--port", String(redis), "--bind", "127.0.0.1", "--save", "", "--dir", root]);
  const bin = readdirSync("/usr/lib/postgresql").map((version) => `/usr/lib/postgresql/${version}/bin`)[0];
  const owner = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {}; // PostgreSQL does not run as root
  if (owner.uid) chownSync(join(root, "pg"), owner.uid, owner.gid);
  await must(`${bin}/initdb`, ["-A", "trust", "-U", "postgres", "-D", join(root, "pg")], { as: owner });
  start(`${bin}/postgres`, ["-D", join(root, "pg"), "-p", String(postgres), "-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${root}/pg`], owner);
  const server = start(program, ["serve", "--port", "0"]);
  await until("the server did not listen", () => /server listening/.test(server.text));
  return { demo, redis: `redis://localhost:${redis}`, postgres: `postgresql://postgres@localhost:${postgres}/postgres` };
}

/** Fills in ${demo} and the addresses of services. */
function fill(value, facts) {
  if (typeof value === "string") return value.replace(/\$\{(\w+)\}/g, (_, name) => facts[name]);
  if (Array.isArray(value)) return value.map((v) => fill(v, facts));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fill(v, facts)]));
  return value;
}

/** Installs one server and returns how that ended. */
async function judge(server, facts) {
  const s = fill(server, facts);
  const source = s.npm ? ["--npm", s.npm] : ["--pypi", s.pypi];
  const env = Object.entries(s.env ?? {}).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const installed = await run(program, ["app", "install", ...source, "--as", s.app, ...(s.allow ?? []), "--allow-requested", "--timeout", "3m", ...env, ...(s.args ? ["--", ...s.args] : [])]);
  if (!installed.ok) return verdict(s, "not installed", installed.said);
  const tools = JSON.parse(await must(program, ["tool", "list", "--json"])).tools.filter((t) => t.server === s.app || t.name?.startsWith(`${s.app}__`));
  if (!s.call) return { end: "runs", why: `${tools.length} tools` };
  const called = await run(program, ["tool", "call", `${s.app}__${s.call}`, "-"], { input: JSON.stringify(s.with) });
  const text = called.out + called.said;
  if (called.ok && new RegExp(s.shows).test(text)) return { end: "runs", why: `${tools.length} tools, ${s.call}` };
  const shown = await run(program, ["app", "permissions", s.app]);
  return verdict(s, "call failed", `${text}\n${shown.out}`);
}

function verdict(s, end, said) {
  const expected = s.lacks && new RegExp(s.lacks, "i").test(said);
  const own = said.split("\n").filter((line) => !/^[\w-]+: (resolving|installing|starting) /.test(line)).join("\n"); // progress of other apps
  return { end: expected ? "says why" : end, why: own, wrong: !expected };
}

/** Imports one pasted file. Each server in it must be installed, or a sentence must say why it cannot be. */
async function paste(file) {
  const { out, said } = await run(program, ["app", "import", file, "--allow-requested", "--replace", "--json"]);
  let servers;
  try {
    ({ servers } = JSON.parse(out));
  } catch {
    return { end: "not imported", why: said || out, wrong: true };
  }
  for (const { app } of servers) if (app) await run(program, ["app", "uninstall", app.name]);
  const lines = servers.map((s) => `${s.name}: ${s.status}${s.message ? `: ${s.message}` : ""}`);
  const silent = servers.some((s) => s.status === "failed" && !/[a-z]+ [a-z]+/.test(s.message ?? ""));
  return { end: "imported", why: lines.join("\n"), wrong: silent };
}

async function main() {
  const facts = await prepare();
  const only = new RegExp(flags.only);
  const jobs = JSON.parse(readFileSync(join(here, "servers.json"), "utf8")).filter((s) => only.test(s.app)).map((s) => ({ name: s.app, act: () => judge(s, facts).finally(() => run(program, ["app", "uninstall", s.app])) }));
  if (!flags["no-pasted"]) {
    const pasted = join(dirname(here), "pasted");
    for (const file of readdirSync(pasted)) if (file !== "wanted.json" && only.test(file)) jobs.push({ name: file, act: () => paste(join(pasted, file)) });
  }
  let wrong = 0;
  const count = {};
  const work = async () => {
    for (let job; (job = jobs.shift()); ) {
      const began = Date.now();
      const result = await job.act().catch((error) => ({ end: "error", why: String(error), wrong: true }));
      wrong += result.wrong ? 1 : 0;
      count[result.end] = (count[result.end] ?? 0) + 1;
      console.log(`${result.wrong ? "✗" : "✓"} ${job.name.padEnd(22)} ${result.end.padEnd(14)} ${((Date.now() - began) / 1000).toFixed(0)}s  ${result.why.trim().replaceAll("\n", "\n      ")}`);
    }
  };
  await Promise.all(Array.from({ length: Number(flags.jobs) }, work));
  console.log(Object.entries(count).map(([end, n]) => `${n} ${end}`).join(", "));
  return wrong;
}

/** Stops everything that was started, the server first. */
async function end() {
  for (const child of running.splice(0).reverse()) {
    const ended = new Promise((done) => child.once("exit", done));
    if (child.exitCode === null && child.kill("SIGTERM")) await ended;
  }
  if (existsSync(root)) rmSync(root, { recursive: true, force: true });
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => end().finally(() => process.exit(1)));
let wrong = 1;
try {
  wrong = await main();
} finally {
  await end();
}
process.exit(wrong ? 1 : 0);
