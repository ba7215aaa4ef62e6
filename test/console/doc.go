// Package console tests the web interface in the way people use it. The executable serves the interface, headless
// Chromium displays it, and playwright-core controls the browser. The steps in the browser are in the *.mjs files, one
// for each test. They also take the screenshots in docs/console.md.
package console
