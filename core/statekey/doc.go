// Package statekey finds the keys that encrypt the state: in a file, in the configuration or the environment,
// or in the output of a command.
//
// It owns the rules for the key file. Package seal defines how the keys are used.
package statekey
