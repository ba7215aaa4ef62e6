// Package webclient is how the registries that live on the web are asked: bounded answers, errors
// by the contract's table, and no way to an address that the operator did not mean.
//
// It owns connections and HTTP statuses; what is asked, and what an answer means, is each
// registry's own.
package webclient
