// Package statekey finds the keys that encrypt the state: in a file, in the configuration or the environment,
// or in the output of a command.
//
// It owns the rules of the key file. What keys do is decided by package seal.
package statekey
