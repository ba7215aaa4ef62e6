// Package rival contains the servers that the benchmark compares with, and the bundles behind them.
//
// They are small programs, each as simple as possible. The servers are one with the MCP SDK's HTTP handler
// (direct), a gateway with the SDK on both sides (gateway), and a relay that passes raw JSON-RPC between
// HTTP and a bundle (relay). There are also two bundles, one written with the SDK and one by hand, and a
// model provider that sends timestamps (model). None of them is part of the service, and none has more
// options than a row of the table needs.
//
// Only this package of the benchmark imports the SDK.
package rival
