// Package examples checks that third parties can write plugins without our code. It installs each example in examples/
// as its README says, loads it as a server would, and runs the conformance kit for its kind.
//
// It tests what every plugin must survive in any language: being killed under load, unauthorized connections to
// its socket, and invalid settings. It contains only tests.
package examples
