// Package testenv starts the real outside parts that tests run against, on loopback and on free
// ports: what npm installs from test/npm, the programs among it, and a browser.
//
// It owns finding and installing them, once per machine and version. It is for tests only; nothing
// that ships imports it.
package testenv
