package pluginhost

import (
	"context"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

// Audit is an audit sink in its own process. It is an audit.Reader; Close it when nobody uses it any more.
type Audit struct{ *slot[audit.Sink] }

// Audit starts a configured audit sink. Wrong settings are a *plugins.ConfigError, everything else that keeps it
// from starting a *StartError. Handles of old are those that the caller closes when the new one is in use; see
// exclusive.go for what happens to them.
func (h *Host) Audit(ctx context.Context, a config.AuditSink, old ...*Audit) (*Audit, error) {
	t, err := h.find(plugins.KindAudit, a.Plugin)
	if err != nil {
		return nil, err
	}
	t.label = a.Name
	var slots []*slot[audit.Sink]
	for _, other := range old {
		slots = append(slots, other.slot)
	}
	s, err := load(ctx, h, t, contract[audit.Sink]{newClient: clientOf(t, audit.Clients()), harmless: func(ctx context.Context, sink audit.Sink) error {
		return sink.Write(ctx, "probe", nil)
	}}, slots)
	if err != nil {
		return nil, err
	}
	return &Audit{s}, nil
}

// Write is audit.Sink's. A call whose process died is repeated: the contract has a sink keep a record once.
func (a Audit) Write(ctx context.Context, stream string, records []audit.Record) error {
	return a.call(ctx, func(ctx context.Context, sink audit.Sink) error { return sink.Write(ctx, stream, records) })
}

// Read is audit.Reader's; plugins.ErrUnimplemented when the sink does not show what it has kept.
func (a Audit) Read(ctx context.Context, stream string, after uint64, limit int) (records []audit.Record, err error) {
	err = a.call(ctx, func(ctx context.Context, sink audit.Sink) error {
		reader, ok := sink.(audit.Reader)
		if !ok {
			return plugins.ErrUnimplemented
		}
		records, err = reader.Read(ctx, stream, after, limit)
		return err
	})
	return records, err
}

// Reads reports whether the sink declares that it shows what it has kept.
func (a Audit) Reads() bool {
	return a.has(plugins.CapabilityRead, func(sink audit.Sink) bool {
		_, reads := sink.(audit.Reader)
		return reads
	})
}
