package pluginhost

import (
	"context"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

// Audit is an audit sink in its own process. It implements audit.Reader. Close it when it is no longer used.
type Audit struct{ *slot[audit.Sink] }

// Audit starts a configured audit sink, as open does.
func (h *Host) Audit(ctx context.Context, p config.Plugin, old ...*Audit) (*Audit, error) {
	s, err := open(ctx, h, kind[audit.Sink]{plugins.KindAudit, audit.Clients(), func(ctx context.Context, sink audit.Sink) error {
		return sink.Write(ctx, "probe", nil)
	}}, p, old)
	if err != nil {
		return nil, err
	}
	return &Audit{s}, nil
}

// Write implements audit.Sink. If the process dies during the call, the call is repeated: the contract requires a
// sink to keep a record only once.
func (a Audit) Write(ctx context.Context, stream string, records []audit.Record) error {
	return a.call(ctx, func(ctx context.Context, sink audit.Sink) error { return sink.Write(ctx, stream, records) })
}

// Read implements audit.Reader. It returns plugins.ErrUnimplemented if the sink cannot read back its records.
func (a Audit) Read(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
	return ask(ctx, a.call, capable[audit.Reader, audit.Sink](func(ctx context.Context, reader audit.Reader) ([]audit.Record, error) {
		return reader.Read(ctx, stream, after, limit)
	}))
}

// Reads reports whether the sink declares that it can read back its records.
func (a Audit) Reads() bool { return declares[audit.Reader](a.slot, plugins.CapabilityRead) }
