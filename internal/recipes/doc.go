// Package recipes tests that what CONTRIBUTING.md lists for a new endpoint, adapter, event or plugin
// kind is complete: each test names the file that was forgotten.
//
// It reads the sources as text and imports none of them, so that it also finds what does not compile
// yet. It has no code of its own that ships.
package recipes
