// Package authtest is the conformance kit of auth adapters: what the contract of package auth
// promises, as named checks for package kit.
//
// It owns the checks, a small OpenID provider on loopback that they switch faults on, and a table
// of forged tokens. An adapter of OpenID providers is opened anew for each check, configured for
// a provider of that check's own; an adapter of another kind brings Samples and is asked what
// needs no provider. Each check is proven by a lying adapter that only it catches.
package authtest
