//go:build chaos

package mcp

// callsWithToken is how often callertoken_test.go calls each app in make chaos.
const callsWithToken = 5_000
