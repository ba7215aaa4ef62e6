// Package directory is the registry adapter for a folder of .mcpb files. It reads names and versions from the files'
// manifests, so the folder needs no index. It needs no network.
//
// A file's sha256 is computed when the file is first needed. If the folder has a SHA256SUMS, or the file has a sidecar
// with the added extension .sha256, the digest must match it. A file whose digest differs is never served, but it does
// not count as missing either.
package directory
