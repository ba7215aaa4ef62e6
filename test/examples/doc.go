// Package examples proves that third parties can write plugins without our code: it installs each
// example of examples/ as its README says, loads it as a server would, and holds it against the
// conformance kit of its kind.
//
// It owns the installing and what every plugin must survive, whatever its language: being killed
// under load, strangers at its socket, wrong settings. It holds tests only.
package examples
