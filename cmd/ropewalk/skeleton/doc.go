// Package skeleton writes the skeleton of a plugin in one of several languages: a complete project that builds
// and passes the conformance kit of its kind. The author can change all of it.
//
// The package contains the files that it writes (files/, with a directory per language and kind; files/any is
// for all languages) and the requirements of a Go module. The files that all plugins in Python or Java share
// come from the directory examples. The command runs the Go tool. The package is separate from the command because
// the templates need their own directory. The command's tests build and test the Go skeletons; test/examples does
// so for the other languages.
package skeleton
