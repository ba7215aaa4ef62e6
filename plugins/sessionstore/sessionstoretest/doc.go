// Package sessionstoretest is the conformance kit of session stores: a model of what the contract allows, histories of
// calls that are generated, recorded and compared with it, and faults between and within the calls.
//
// The model knows one session at a time (model.go). It decides whether the answers of a history fit some order of the
// calls, so that calls may overlap, come from several processes, and have an outcome that their caller did not see.
// A bug is caught because an answer differs from all that the model allows, not because somebody thought of it.
package sessionstoretest
