// Package fakes contains one fake for each small interface that several of the server's packages declare for what
// they use: the event bus, settings and the audit log. The fake of the apps is in testkit/fakeapps.
//
// It imports only the domain types, so that the tests of every package can use it.
package fakes
