// Package seal encrypts records of the state that contain secrets: installed apps, with their environment
// variables and the credentials for remote servers, linked accounts, OAuth clients, and pending browser logins.
//
// It owns the format of keys, the format of encrypted records, and the pass that encrypts records that are
// stored in plain text or with an older key. Package statekey decides where keys come from, and package store
// decides what is encrypted.
package seal
