// Package sessionstoretest is the conformance kit for session stores: a model of what the contract allows, generated
// and recorded histories of calls that are compared with the model, and faults between and during the calls.
//
// The model knows one session at a time (model.go). It decides whether the answers in a history fit some order of the
// calls. Calls may therefore overlap, come from several processes, and have outcomes that their callers did not see. A
// bug is caught because an answer differs from everything that the model allows, not because somebody anticipated the
// bug.
package sessionstoretest
