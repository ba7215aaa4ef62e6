import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// The server of `make run`, for `npm run dev`.
const server = "http://127.0.0.1:27247";

/**
 * A small separate script sends the requests that every visit needs. It runs as soon as it arrives, without waiting for the page's
 * other scripts or styles. They import it, so it is evaluated once.
 */
const askEarly = (): Plugin => ({
  name: "ask-early",
  enforce: "post",
  transformIndexHtml: {
    order: "post",
    handler(html, { bundle }) {
      const early = Object.values(bundle ?? {}).find((output) => output.type === "chunk" && output.name === "early");
      if (!early) return html; // npm run dev has no chunks
      const src = `/${early.fileName}`;
      const script = `<script type="module" async crossorigin src="${src}"></script>`;
      return html
        .replace(new RegExp(`\\s*<link rel="modulepreload"[^>]*href="${src}">`), "")
        .replace(/(\s*)<script type="module"/, `$1${script}$&`);
    },
  },
});

/**
 * Most functions in the scripts that a visit loads first are called immediately. With this hint, Chromium compiles such
 * a script as a whole, in the background while it arrives, instead of each function on the main thread when it is
 * called. Other browsers ignore it.
 */
const compileWhileLoading = (): Plugin => ({
  name: "compile-while-loading",
  enforce: "post",
  generateBundle: {
    order: "post",
    handler(_, bundle) {
      const hint = "//# allFunctionsCalledOnLoad\n";
      const mark = (name: string): void => {
        const chunk = bundle[name];
        if (chunk?.type !== "chunk" || chunk.code.startsWith(hint)) return;
        chunk.code = hint + chunk.code;
        chunk.imports.forEach(mark);
      };
      for (const [name, output] of Object.entries(bundle)) if (output.type === "chunk" && output.isEntry) mark(name);
    },
  },
});

export default defineConfig({
  plugins: [react(), askEarly(), compileWhileLoading()],
  build: {
    outDir: "build",
    target: ["chrome123", "firefox121", "safari17.5"],
    assetsInlineLimit: 0, // the page's policy does not allow data: URLs for fonts and scripts
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "early", test: /[\\/]src[\\/]api[\\/](early|http|digits)\.ts$/, priority: 2 },
            { name: "first", tags: ["$initial"], priority: 1 }, // one script and one style sheet, instead of one for each set of screens that share code
            { name: "icons", test: /[\\/]lucide-react[\\/]dist[\\/]esm[\\/]icons[\\/]/ }, // instead of a script for each
          ],
        },
      },
    },
  },
  server: { proxy: { "/v1": server, "/mcp": server, "/console": server, "/.well-known": server } },
});
