// Package sessionstoretest is the conformance kit for session stores. It contains a model of what the contract
// allows, generates and records histories of calls, with faults between and during the calls, and compares them with
// the model.
//
// The model knows one session at a time (model.go). It decides whether the answers in a history fit some order of the
// calls. Calls may therefore overlap, come from several processes, and have outcomes that their callers did not see. A
// bug is caught because an answer differs from everything that the model allows, not because somebody anticipated the
// bug.
package sessionstoretest
