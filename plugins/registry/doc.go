// Package registry is the contract of a bundle registry, a plugin that finds bundles by name.
//
// It owns the Registry interface, its types, and the conversion to gRPC messages. The server unpacks and
// installs bundles, and decides which to trust. The built-in registries are in subdirectories;
// registrytest is the conformance kit that every registry must pass.
package registry
