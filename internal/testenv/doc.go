// Package testenv starts the real external programs that tests run against, on loopback and on free ports: what
// npm installs from test/npm, and a browser among them.
//
// It finds and installs them, once per machine and version. It is for tests only; nothing that ships imports
// it.
package testenv
