// Package chaos makes the table of `make chaos`: every row of docs/security.md, what was done, the
// figure, what is required and a verdict.
//
// Record is for tests, which add what they measured. The package table runs the tests and prints the
// table. Neither contains tests of the server: those are beside what they test.
package chaos
