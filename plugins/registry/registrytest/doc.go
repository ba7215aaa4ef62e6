// Package registrytest is the conformance kit of registries: a model of the contract, and properties that compare a registry
// with it.
//
// The model (catalogue.go) says what Search and Resolve may answer for a catalogue. The kit generates catalogues in which
// names, versions and platforms are almost alike (generate.go), asks everything that is right or almost right about them, and
// changes them while it asks. A Front makes the backend fail at each of its answers. Of a registry that cannot be given a
// catalogue the kit compares what it shows with itself and with what its author knows.
package registrytest
