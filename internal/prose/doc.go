// Package prose lints the words of the repository: names, comments, messages and documentation use
// the words of docs/glossary.md and of the field, and cite only what is in the repository or public.
//
// It owns the list of words and the exceptions, and nothing that ships. Run it with `make check` or
// `go test ./internal/prose`.
package prose
