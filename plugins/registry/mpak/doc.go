// Package mpak is the registry that speaks the API of mpak, /v1/bundles: scoped .mcpb bundles, each
// with an artifact per platform and a certification level.
//
// It owns the choice of the artifact (this platform, else this system on any architecture, else
// any) and what a certification level means as a trust score.
package mpak
