// Package audittest is the conformance kit for audit sinks: a model of what a sink has kept, and properties
// that compare a sink with it after every operation, failure and restart.
//
// The model (model.go) is a list of records per stream, plus a batch whose first records may have been kept. If a sink
// lacks the capability "read", the kit reads what it has forwarded from its receiver.
package audittest
