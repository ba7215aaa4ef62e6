//go:build !chaos

package mcp

// callsWithToken is how many times callertoken_test.go calls each app.
const callsWithToken = 200
