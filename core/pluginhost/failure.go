package pluginhost

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/plugins"
)

// StartError explains why a plugin could not be started: which plugin, where its file is, what was wrong and
// what to do.
type StartError struct {
	Kind   plugins.Kind
	Name   string
	Path   string // "" for a built-in
	Reason string
	Advice string // "" if the reason is enough
	Stderr string // the last lines the plugin wrote; may be ""

	maybeOtherKind bool // a plugin of another kind would fail in the same way
}

func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s plugin %q", e.Kind, e.Name)
	if e.Path != "" {
		fmt.Fprintf(&b, " (%s)", e.Path)
	}
	b.WriteString(": " + e.Reason)
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	if e.Stderr != "" {
		fmt.Fprintf(&b, "; it wrote: %s", e.Stderr)
	}
	return b.String()
}

func (t target) failed(reason, advice string) *StartError {
	return &StartError{Kind: t.kind, Name: t.name, Path: t.path, Reason: reason, Advice: advice}
}

// handshakeError turns go-plugin's start error into one for operators.
func (t target) handshakeError(err error, run *runner) error {
	e := t.failed(err.Error(), "")
	if run.ended() {
		run.stderr.wait()
	}
	e.Stderr = run.stderr.String()
	if start, ok := errors.AsType[*process.StartError](err); ok {
		e.Reason, e.Advice = start.Reason, "put an executable for this machine there"
		e.Stderr = "" // the output repeats the reason
		return e
	}
	if strings.Contains(err.Error(), process.ErrTampered.Error()) {
		e.Advice = "if the change is intended, put the new sha256 into the configuration"
		return e
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	switch {
	case strings.Contains(message, "timeout while waiting"):
		e.Reason = "it did not respond in time"
		e.Advice = "a plugin must print its handshake line as soon as it is ready to serve (docs/plugins.md); if it needs more time to start, raise plugins.startTimeoutSeconds (or the command's --start-timeout)"
	case strings.Contains(message, "exited before we could connect"), strings.Contains(err.Error(), "Failed to read any lines"):
		e.Reason, e.maybeOtherKind = fmt.Sprintf("it exited before it was ready (%s)", run.exitReason()), true
		e.Advice = fmt.Sprintf("check that it is a plugin of kind %s, and run it by hand to see its output", t.kind)
	case strings.Contains(message, "Unrecognized remote plugin message"):
		e.Reason = fmt.Sprintf("its first output is not the handshake line (%s)", strings.TrimPrefix(message, "Unrecognized remote plugin message: "))
		e.Advice = "standard output is reserved for the handshake; log to standard error"
	case strings.Contains(message, "core API version"), strings.Contains(message, "core protocol version"):
		e.Reason, e.Advice = "its handshake line does not begin with 1, the version of the handshake", "print the line described in docs/plugins.md, with its six fields"
	case strings.Contains(message, "address type"):
		e.Reason, e.Advice = "the network in its handshake line is unknown", "the third field of the line must be unix or tcp"
	case strings.Contains(message, "parsing server cert"):
		e.Reason = "the certificate in its handshake line cannot be read"
		e.Advice = "the sixth field of the line must be its certificate: DER, in base64 without padding"
	case strings.Contains(strings.ToLower(message), "incompatible api version"):
		e.Reason = "it supports no protocol version that this server supports"
		e.Advice = "rebuild it with this server's SDK"
	case strings.Contains(message, "unsupported plugin protocol"):
		e.Reason, e.Advice = "it does not speak gRPC", "the fifth field of its handshake line must be grpc"
	}
	return e
}
