// Package rival holds the servers that the benchmark measures against, and the bundles behind them.
//
// It owns small programs, each as plain as its kind gets: a server with the MCP SDK's own HTTP
// handler (direct), a gateway with the SDK on both sides (gateway), a relay that pipes raw JSON-RPC
// between HTTP and a bundle (relay), two bundles, one written with the SDK and one by hand, and a
// provider of models that says when it said what (model). None of them is part of the service, and none is configurable beyond what a row needs.
//
// It is apart so that the SDK reaches the benchmark through one endpoint.
package rival
