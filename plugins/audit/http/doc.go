// Package http is the audit sink that posts records to a collector, as a JSON array.
//
// A batch is acknowledged once the collector answered 2xx. The sink keeps no queue of its own: the server
// keeps what was not acknowledged, and writes it again. A batch is repeated with growing pauses until the
// deadline of its call. A collector may get a record twice, when an answer was lost; stream and sequence
// tell it.
package http
