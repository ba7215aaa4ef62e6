// Package directory is the registry of a folder of .mcpb files: name and version are read from
// each file's manifest, so what lies there is what there is. It needs no network.
//
// A file's sha256 is worked out when somebody wants the file. Where the folder holds a SHA256SUMS,
// or a file has a sidecar of its name with .sha256, the digest must be the one written there; a file
// that differs is never given away, and never counts as missing either.
package directory
