package server

import (
	"context"

	"github.com/ropewalk/ropewalk/core/audit"
	"github.com/ropewalk/ropewalk/core/tools"
)

// auditing is the audit log with its outputs.
type auditing struct {
	log     *audit.Log               // nil if no file or sink is configured
	file    *audit.File              // nil if audit.file is not set
	streams map[string]*audit.Stream // by the name of the sink
}

// openAudit opens the audit log, if a file or a sink is configured.
func (s *Server) openAudit() error {
	c, log := s.config().Audit, s.log.Named("audit")
	if c.File != "" {
		file, err := audit.OpenFile(c.File, audit.FileOptions{
			Durable: c.FailClosed, MaxBytes: c.MaxBytes, MaxAge: c.MaxAge, Keep: c.Retention,
			Problem: func(err error) { log.Error("audit files cannot be rotated", "error", err) },
		})
		if err != nil {
			return err
		}
		s.audit.file = file
	}
	sinks, _ := s.connectSinks()
	s.audit.log = audit.New(audit.Options{Sinks: sinks, FailClosed: c.FailClosed, Arguments: c.Arguments, Logger: log})
	s.closers.add("audit", func(ctx context.Context) error { return s.audit.log.Close(ctx) })
	return nil
}

// connectSinks gives each audit sink a stream. If a sink with the same name already had a stream, the new sink continues
// it. It returns all destinations of records, and the streams of removed sinks.
func (s *Server) connectSinks() (all []audit.Sink, gone map[string]*audit.Stream) {
	if s.audit.file != nil {
		all = append(all, s.audit.file)
	}
	gone, s.audit.streams = s.audit.streams, map[string]*audit.Stream{}
	for _, m := range s.adapters.sinks.Members() {
		stream := gone[m.Name]
		if stream == nil {
			stream = audit.NewStream(audit.StreamOptions{Name: m.Name, Sink: m.Handle, Wait: s.config().Audit.FailClosed, Logger: s.log.Named("audit")})
		} else {
			stream.Use(m.Handle)
			delete(gone, m.Name)
		}
		s.audit.streams[m.Name] = stream
		all = append(all, stream)
	}
	return all, gone
}

// reconnectSinks makes the audit log write to the sinks in a reloaded configuration. Records that are waiting for a removed
// sink are written to it first, as long as it accepts them.
func (s *Server) reconnectSinks(ctx context.Context) {
	if s.audit.log == nil {
		return
	}
	sinks, gone := s.connectSinks()
	s.audit.log.Use(sinks)
	for _, stream := range gone {
		if err := stream.Close(ctx); err != nil {
			s.log.Error("an audit sink was removed before it had received every record", "error", err)
		}
	}
}

// auditor returns the audit log, or nil if there is none.
func (s *Server) auditor() tools.Auditor {
	if s.audit.log == nil {
		return nil
	}
	return s.audit.log
}
