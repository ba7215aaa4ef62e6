// Package registrytest is the conformance kit for registries: a model of the contract, and properties that compare a
// registry with the model.
//
// The model (catalogue.go) defines what Search and Resolve may return for a catalogue. The kit generates catalogues
// with names, versions and platforms that are almost alike (generate.go), makes correct and almost correct queries
// about them, and changes them at the same time. A Front makes the backend fail at each of its responses. If a registry
// cannot publish a generated catalogue, the kit checks that what it lists is consistent and agrees with what its author
// knows.
package registrytest
