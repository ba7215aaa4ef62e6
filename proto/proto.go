// Package proto holds the contracts of plugins as files, for tools and for plugins in other languages. The
// packages below it hold the Go code that protoc generates from them.
package proto

import "embed"

// Files returns the .proto files, by their import paths: ropewalk/plugin/v1/plugin.proto and so on.
func Files() embed.FS { return files }

//go:embed ropewalk/*/v1/*.proto
var files embed.FS
