// Package login serves the routes of logins under /v1/auth: with the API key, and with the browser at an
// identity provider.
//
// It owns the cookies and the redirects. It does not verify keys, tokens or codes (package access).
package login
