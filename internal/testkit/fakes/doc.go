// Package fakes holds one fake for each small interface that packages of the server declare for what they use: the bus
// of events, settings, the audit log. The fake of the apps is in testkit/fakeapps.
//
// It imports the domain types only, so that the tests of every package can use it.
package fakes
