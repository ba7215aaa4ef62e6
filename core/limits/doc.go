// Package limits shares the server fairly among its principals: it limits what one user, API key or anonymous address
// may use at once and per second.
//
// It owns the counting. Package access decides who a principal is, and the packages that call Acquire decide
// what is limited.
package limits
