// Command table runs the tests of every row of docs/security.md with the counts that `make chaos` promises.
// It prints one table: what was done, the figure, what is required and a verdict. With row numbers as
// arguments it runs only those.
//
// A row holds if its tests recorded figures that meet the requirement. It passes if its tests passed with the counts
// of `make test` and recorded none. Rows without a test are listed as not measured. The exit status is 1 if a
// row fails.
package main
