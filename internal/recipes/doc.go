// Package recipes tests that CONTRIBUTING.md's recipes for a new endpoint, adapter, event or plugin kind were
// followed completely: each test names the file that was forgotten.
//
// It reads the sources as text and does not import them, so that it also checks code that does not compile yet.
// It contains no code that ships.
package recipes
