// Package notify keeps what clients receive from apps outside their calls: who listens in a workspace,
// which log level it has, and which resources are subscribed to. It calls no app; apps does.
package notify
