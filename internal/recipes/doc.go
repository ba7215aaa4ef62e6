// Package recipes tests that the recipes in CONTRIBUTING.md for a new endpoint, adapter, event or plugin kind
// were followed completely. Each test names the file that was forgotten.
//
// It reads the sources as text and does not import them, so that it can check code that does not compile. It
// contains no code that ships.
package recipes
