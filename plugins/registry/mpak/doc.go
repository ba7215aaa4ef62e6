// Package mpak is the registry adapter for mpak's API, /v1/bundles. It offers scoped .mcpb bundles, each with an
// artifact per platform and a certification level.
//
// It owns the choice of the artifact (for this platform, or else this operating system on any architecture, or else any
// platform) and the mapping of certification levels to trust scores.
package mpak
