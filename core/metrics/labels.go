package metrics

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// How many values the labels have that are named by what is installed or configured.
const (
	maxTools  = 2000
	maxApps   = 500
	maxModels = 100
)

// other is the value of a label in place of one that is not known, or that is one too many.
const other = "_OTHER"

// limitedSet admits a limited number of values. It is safe for concurrent use.
type limitedSet struct {
	seen  *sync.Map
	count *atomic.Int64
	limit int64
}

func newLimitedSet(limit int64) limitedSet {
	return limitedSet{seen: &sync.Map{}, count: &atomic.Int64{}, limit: limit}
}

// admits reports whether value is one of the set, or becomes one: the first values are kept.
func (s limitedSet) admits(value string) bool {
	if _, ok := s.seen.Load(value); ok {
		return true
	}
	if s.count.Add(1) > s.limit {
		s.count.Add(-1)
		return false
	}
	if _, loaded := s.seen.LoadOrStore(value, struct{}{}); loaded {
		s.count.Add(-1)
	}
	return true
}

// or returns value, or other when it is one too many.
func (s limitedSet) or(value string) string {
	if s.admits(value) {
		return value
	}
	return other
}

// methodOf returns an MCP method, or other for one that the protocol does not have: clients and apps may
// send any.
func methodOf(method string) string {
	switch method {
	case "initialize", "ping", "server/discover", "tools/call", "tools/list", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"completion/complete", "logging/setLevel", "subscriptions/listen", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel",
		"tasks/update":
		return method
	}
	return other
}

// revisionOf returns a protocol revision, or other for none that is known.
func revisionOf(revision string) string {
	switch revision {
	case "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28":
		return revision
	}
	return other
}

// rpcErrorType returns the error.type of a JSON-RPC error: its code if the protocol defines it, else
// other, since apps choose their own.
func rpcErrorType(code int64) string {
	switch code {
	case -32700, -32600, -32601, -32602, -32603, // JSON-RPC
		-32000, -32001, -32002, -32003, -32004, -32020, -32042, -32800: // MCP and this server
		return strconv.FormatInt(code, 10)
	}
	return other
}
