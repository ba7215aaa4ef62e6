// Package skeleton writes the beginning of a plugin: a module of its own that builds, passes its
// kind's conformance kit and is the author's to change.
//
// It owns the files it writes (files/, one folder per kind) and what the module requires. It does
// not own running the Go tool. It is apart from the command because the templates need a folder of
// their own; the command's tests build and try every one of them.
package skeleton
