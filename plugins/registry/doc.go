// Package registry is the contract of a bundle registry: where bundles are found by name.
//
// It owns the Registry interface, its types, and their gRPC wire. It does not own unpacking,
// installing or trust decisions: those are the server's. The folders beneath are registries;
// registrytest holds the conformance kit that each must pass.
package registry
