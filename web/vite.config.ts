import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The server of `make run`, for `npm run dev`.
const server = "http://127.0.0.1:27247";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "build",
    target: ["chrome123", "firefox121", "safari17.5"],
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses of fonts and scripts
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": server, "/mcp": server, "/console": server, "/.well-known": server } },
});
