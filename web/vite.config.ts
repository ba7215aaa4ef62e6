import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// The server of `make run`, for `npm run dev`.
const server = "http://127.0.0.1:27247";

/**
 * Most functions of the scripts that a visit begins with are called at once. Chromium compiles such a script as a whole, in the
 * background while it arrives, instead of each function on the main thread when it is called. To other browsers it is a comment.
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
  plugins: [react(), compileWhileLoading()],
  build: {
    outDir: "build",
    target: ["chrome123", "firefox121", "safari17.5"],
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses of fonts and scripts
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": server, "/mcp": server, "/console": server, "/.well-known": server } },
});
