// Package console tests the web interface as people use it: the executable serves it, headless Chromium
// shows it, and playwright-core drives the browser. What happens in the browser is in the *.mjs files, one
// for each test; they also take the screenshots of docs/console.md.
package console
