//go:build race

package e2e

// raced says that these tests look for races; so does then every server they start.
const raced = true
