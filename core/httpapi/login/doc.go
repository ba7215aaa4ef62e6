// Package login serves the login routes under /v1/auth: logins with the API key, browser logins with an identity
// provider, and command-line logins with a code.
//
// It owns the cookies and the redirects. It does not verify keys, tokens or codes; package access does.
package login
