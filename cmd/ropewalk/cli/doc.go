// Package cli defines the conventions that all commands share: which server a command talks to, what it prints
// where, and its exit status.
//
// Data goes to standard output, everything else to standard error. The exit status is 0, 1 for a failure, 2 for
// incorrect usage, 3 if the server must be restarted to apply something, and 4 if a test could not judge
// everything. `--json` prints the API's response. Color is used only on terminals, and not with NO_COLOR.
package cli
