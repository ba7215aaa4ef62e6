// Package console tests the web interface the way people use it. The executable serves it, headless Chromium
// shows it, and playwright-core controls the browser. The steps in the browser are in the *.mjs files, one per
// test. They also take the screenshots in docs/console.md.
package console
