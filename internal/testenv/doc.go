// Package testenv starts the real external programs that tests use, on loopback and on free ports. Among them
// are a browser and the packages that npm installs from test/npm.
//
// It finds and installs them, once per machine and version. It is for tests only; nothing that ships imports
// it.
package testenv
