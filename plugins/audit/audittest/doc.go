// Package audittest is the conformance kit of audit sinks: a model of what a sink has kept, and properties that compare a sink
// with it after every operation, failure and restart.
//
// The model (model.go) is a list of records for each stream, with the batch of which the first records may have been kept.
// What a sink without the capability "read" has passed on is read from its receiver.
package audittest
