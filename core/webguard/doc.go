// Package webguard decides which web requests are taken: under which names (Host) the server is called,
// which pages (Origin) call it, which proxies are believed about the client, which header holds the
// bearer token, and of which media types bodies are. It is the defence of both HTTP packages against DNS
// rebinding and cross-site requests. It also holds what both note about a request for the access log and its
// trace: route, caller and tool.
//
// It does not know identities (access does), and writes neither responses nor logs: httpapi and mcphttp each
// refuse in their own format. It is a package of its own so that the two cannot differ in what they let in.
package webguard
