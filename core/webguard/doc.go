// Package webguard decides which web requests are accepted. It checks the names (Host) by which the server may be
// addressed, the pages (Origin) that may call it, and the proxies that are trusted to name the client. It also reads
// the header with the bearer token, and checks the media types of bodies. It protects both HTTP packages against DNS
// rebinding and cross-site requests. It also defines the request information that both packages record for the access
// log and the trace: route, caller and tool.
//
// It knows nothing about identities (access does), and it does not write responses or logs: httpapi and mcphttp each
// have their own format for refusals. It is a separate package so that both accept exactly the same requests.
package webguard
