//go:build !chaos

package mcp

// callsWithToken is how often callertoken_test.go calls each app.
const callsWithToken = 200
