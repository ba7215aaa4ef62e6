import js from "@eslint/js";
import reactHooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["build/", "src/api/schema.d.ts"] },
  js.configs.recommended,
  ts.configs.recommended,
  // Includes the rules of the React Compiler: no writes to refs during render, no changes to what a query returned.
  reactHooks.configs.flat["recommended-latest"],
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "react-hooks/incompatible-library": "off", // the console is not built with the React Compiler
    },
  },
  { files: ["scripts/*.mjs"], languageOptions: { globals: { console: "readonly", Buffer: "readonly" } } },
);
