// Package testkit holds what the tests of several packages share: a log that a test can read while
// others write it, and waiting for a condition.
//
// It imports nothing of the server, so that every package can use it, and it does not start outside
// programs: that is testenv's. Fakes of interfaces that several packages declare are in testkit/fakes, that of the apps
// that a namespace calls is in testkit/fakeapps.
package testkit
