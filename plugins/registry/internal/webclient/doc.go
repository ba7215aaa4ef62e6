// Package webclient is the HTTP client of the web registries. It bounds responses, maps statuses to the contract's
// errors, and refuses addresses that the operator did not intend.
//
// It owns connections and HTTP statuses. Each registry adapter owns its requests and the meaning of the responses.
package webclient
