// Package cli holds the conventions that all commands share: which server a command speaks to, what it
// prints where, and with which status it exits.
//
// Data goes to standard output, everything else to standard error. The exit status is 0, 1 for a
// failure, 2 for wrong usage, 3 when the server must be restarted to apply something, and 4 when a test could not judge everything. `--json`
// prints what the API says. Colour is used on terminals only, and not with NO_COLOR.
package cli
