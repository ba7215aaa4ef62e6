// Package limits shares the server among its principals: it bounds what one user, API key or anonymous
// address may use at a time and per second.
//
// It owns the counting. It does not own who a principal is (access), or what is limited (the packages
// that acquire).
package limits
