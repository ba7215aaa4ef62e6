//go:build linux && !(shim && (amd64 || arm64))

package process

var embeddedShim []byte //nolint:gochecknoglobals // never changes
