// Package rpc holds what every layer of a call says in JSON-RPC 2.0: notifications and errors as they
// pass from an app to a client, and the framing of responses, requests and notifications.
//
// It does not read messages (link and mcphttp do, each as strictly as its peer requires) and knows
// nothing of MCP's methods. It is a package of its own so that the HTTP packages need not import link,
// and link need not import them.
package rpc
