package server

import (
	"context"
	"reflect"
	"slices"

	"github.com/ropewalk/ropewalk/core/audit"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/tools"
)

// namedSink is a running audit sink.
type namedSink struct {
	config config.AuditSink
	handle *pluginhost.Audit
	stream *audit.Stream // nil until records go to it
}

// openSinks starts every configured audit sink that is not among those that are kept, in place of old, all or
// nothing.
func openSinks(ctx context.Context, h *pluginhost.Host, c *config.Config, kept, old []namedSink) (all []namedSink, err error) {
	var started []namedSink
	var replaced []*pluginhost.Audit
	for _, one := range otherSinks(old, kept) {
		replaced = append(replaced, one.handle)
	}
	defer func() {
		if err != nil {
			closeSinks(ctx, started)
		}
	}()
	for _, a := range c.Audit.Sinks {
		if i := slices.IndexFunc(kept, func(k namedSink) bool { return sameSink(k.config, a) }); i >= 0 {
			all = append(all, kept[i])
			continue
		}
		handle, err := h.Audit(ctx, a, replaced...)
		if err != nil {
			return nil, located(c, a.Plugin, err)
		}
		one := namedSink{config: a, handle: handle}
		started, all = append(started, one), append(all, one)
	}
	return all, nil
}

// sameSink reports whether the process of one configured sink serves for another.
func sameSink(a, b config.AuditSink) bool {
	a.At, b.At = "", ""
	return reflect.DeepEqual(a, b)
}

func closeSinks(ctx context.Context, all []namedSink) {
	for _, one := range all {
		one.handle.Close(ctx)
	}
}

// openAudit opens the audit log; without sinks there is none.
func (s *Server) openAudit() error {
	c, log := s.config.Audit, s.log.Named("audit")
	var sinks []audit.Sink
	if c.File != "" {
		file, err := audit.OpenFile(c.File, audit.FileOptions{
			Durable: c.FailClosed, MaxBytes: c.MaxBytes, MaxAge: c.MaxAge, Keep: c.Retention,
			Problem: func(err error) { log.Error("audit files are not rotated", "error", err) },
		})
		if err != nil {
			return err
		}
		s.auditFile = file
		sinks = append(sinks, file)
	}
	sinks = append(sinks, s.streams(s.adapters.sinks, nil)...)
	s.audit = audit.New(audit.Options{Sinks: sinks, FailClosed: c.FailClosed, Arguments: c.Arguments, Logger: log})
	s.closers.add("audit", func(ctx context.Context) error { return s.audit.Close(ctx) })
	return nil
}

// streams gives each sink its stream: that of the one of the same name before it, which then goes on with the
// new sink, or a new one.
func (s *Server) streams(sinks, before []namedSink) (all []audit.Sink) {
	for i := range sinks {
		one := &sinks[i]
		if one.stream == nil {
			if j := named(before, one.config.Name); j >= 0 {
				one.stream = before[j].stream
				one.stream.Use(one.handle)
			} else {
				one.stream = audit.NewStream(audit.StreamOptions{
					Name: one.config.Name, Sink: one.handle, Wait: s.config.Audit.FailClosed, Logger: s.log.Named("audit"),
				})
			}
		}
		all = append(all, one.stream)
	}
	return all
}

// named returns the place of the sink with a name, -1 when there is none.
func named(sinks []namedSink, name string) int {
	return slices.IndexFunc(sinks, func(one namedSink) bool { return one.config.Name == name })
}

// currentSinks returns the sinks that a configuration still has, whose file is the one that they were started
// from.
func (a *adapters) currentSinks(next *config.Config) ([]namedSink, error) {
	var current []namedSink
	for _, one := range a.sinks {
		i := slices.IndexFunc(next.Audit.Sinks, func(other config.AuditSink) bool { return sameSink(one.config, other) })
		if i < 0 {
			continue
		}
		outdated, err := one.handle.Outdated()
		if err != nil {
			return nil, located(next, next.Audit.Sinks[i].Plugin, err)
		}
		if !outdated {
			current = append(current, one)
		}
	}
	return current, nil
}

// otherSinks returns the sinks of all whose process is none of those of some.
func otherSinks(all, some []namedSink) []namedSink {
	return slices.DeleteFunc(slices.Clone(all), func(one namedSink) bool {
		return slices.ContainsFunc(some, func(other namedSink) bool { return other.handle == one.handle })
	})
}

// prepareSinks finds out which sinks a reload has to start.
func (s *Server) prepareSinks(next *config.Config, x *replacement, changed bool) error {
	if auditRestarts(s.config.Audit, next.Audit) {
		return nil
	}
	kept, err := s.adapters.currentSinks(next)
	if err != nil {
		return err
	}
	x.newSinks, x.keptSinks = changed || len(kept) < len(s.adapters.sinks), kept
	return nil
}

// replaceSinks puts the sinks of a reload to use, and returns those that nobody uses any more. What waits for a
// sink that is gone is written to it first, for as long as it takes records.
func (s *Server) replaceSinks(ctx context.Context, next []namedSink) (retired []namedSink) {
	before := s.adapters.sinks
	var sinks []audit.Sink
	if s.auditFile != nil {
		sinks = append(sinks, s.auditFile)
	}
	s.audit.Use(append(sinks, s.streams(next, before)...))
	s.adapters.sinks = next
	for _, one := range before {
		if named(next, one.config.Name) >= 0 {
			continue
		}
		if err := one.stream.Close(ctx); err != nil {
			s.log.Error("an audit sink was removed before it had taken every record", "error", err)
		}
	}
	return otherSinks(before, next)
}

// auditRestarts reports whether the difference of two audit sections takes a new start: everything but which
// sinks there are.
func auditRestarts(before, next config.Audit) bool {
	on := before.On() == next.On()
	before.Sinks, next.Sinks = nil, nil
	return !on || !reflect.DeepEqual(before, next)
}

// auditor is the audit log, nil without one.
func (s *Server) auditor() tools.Auditor {
	if s.audit == nil {
		return nil
	}
	return s.audit
}
