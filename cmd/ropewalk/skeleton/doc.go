// Package skeleton writes the beginning of a plugin in one of several languages: a project of its own
// that builds, passes its kind's conformance kit and is the author's to change.
//
// It owns the files it writes (files/, one folder per language and kind; files/any is for all languages) and
// what a Go module requires. What every plugin in Python or Java has in common comes from the folder examples.
// It does not own running the Go tool. It is apart from the command because the templates need a folder of
// their own; the command's tests build and try those in Go, test/examples those in other languages.
package skeleton
