// Package http is the audit sink that posts records to a collector, as a JSON array.
//
// A batch is acknowledged once the collector has returned a 2xx status. The sink has no queue of its own: the server
// keeps what was not acknowledged and writes it again. A batch is retried with growing pauses until the deadline of its
// call. If a response is lost, the collector may get a record twice; it can detect that by stream and sequence.
package http
