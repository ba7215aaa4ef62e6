// Writes Vite's output to core/console/dist, where the server embeds it. Text files are compressed with
// brotli and with gzip; other files are copied. The licenses of the included packages are added. The same
// sources give the same bytes on any machine and at any time.
import { gzipSync } from "fflate";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const from = join(import.meta.dirname, "..", "build");
const to = join(import.meta.dirname, "..", "..", "core", "console", "dist");
const text = /\.(html|js|css|svg|json|txt)$/;

function* files(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* files(path);
    else yield path;
  }
}

function pack(name, content) {
  const target = join(to, name);
  mkdirSync(dirname(target), { recursive: true });
  if (!text.test(name)) {
    writeFileSync(target, content);
    return content.length;
  }
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  const small = brotliCompressSync(content, { params });
  writeFileSync(target + ".br", small);
  writeFileSync(target + ".gz", gzipSync(content, { level: 9, mtime: "2000-01-01" }));
  return small.length;
}

// licences returns the license texts of the packages in the assets.
function licences() {
  const root = join(import.meta.dirname, "..");
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const parts = [];
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === "" || entry.dev || entry.devOptional || entry.optional || !existsSync(join(root, path))) continue;
    const file = readdirSync(join(root, path))
      .sort()
      .find((name) => /^licen[cs]e(\.|$)/i.test(name));
    const words = file ? readFileSync(join(root, path, file), "utf8").trim() : `License: ${entry.license}`;
    parts.push(`${path.replace(/^.*node_modules\//, "")} ${entry.version}\n\n${words}\n`);
  }
  return Buffer.from(parts.sort().join("\n" + "-".repeat(80) + "\n"));
}

rmSync(to, { recursive: true, force: true });
let total = 0;
for (const path of files(from)) total += pack(relative(from, path), readFileSync(path));
total += pack("assets/licences.txt", licences());
console.log(`core/console/dist: ${Math.round(total / 1024)} KiB with brotli`);
