// Package testkit contains what tests in several packages share: a log that a test can read while others
// write to it, and waiting for a condition.
//
// It imports nothing from the server, so that every package can use it, and it does not start external
// programs: testenv does. Fakes of interfaces that several packages declare are in testkit/fakes. The fake of
// the apps that a namespace calls is in testkit/fakeapps.
package testkit
