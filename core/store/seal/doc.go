// Package seal encrypts the records of the state that hold secrets: installed apps, with the values of
// their environment and the credentials of remote servers, linked accounts, and browser logins under way.
//
// It owns the form of a key, the form of an encrypted record, and the pass that encrypts what is stored in
// plain or with an older key. Where keys come from is decided by package statekey; what is encrypted is
// decided by package store.
package seal
