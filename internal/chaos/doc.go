// Package chaos produces the table of `make chaos`: for every row of docs/security.md, what was done, the
// figure, what is required and a verdict.
//
// Record is for tests, which add what they measured. The package table runs the tests and prints the table.
// Neither contains tests of the server itself, which are in the packages that they test.
package chaos
