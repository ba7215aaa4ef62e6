package server

import (
	"net/http"

	"github.com/ropewalk/ropewalk/core/audit"
	"github.com/ropewalk/ropewalk/core/tools"
)

// openAudit opens the audit log; without sinks there is none.
func (s *Server) openAudit() error {
	c := s.config.Audit
	log := s.log.Named("audit")
	var sinks []audit.Sink
	if c.File != "" {
		file, err := audit.OpenFile(c.File, audit.FileOptions{
			Durable: c.FailClosed, MaxBytes: c.MaxBytes, MaxAge: c.MaxAge, Keep: c.Retention,
			Problem: func(err error) { log.Error("audit files are not rotated", "error", err) },
		})
		if err != nil {
			return err
		}
		sinks = append(sinks, file)
	}
	if c.URL != "" {
		sinks = append(sinks, audit.NewHTTP(c.URL, c.Token, http.DefaultClient, func(records int, err error) {
			log.Error("audit records were lost", "records", records, "error", err)
		}))
	}
	s.audit = audit.New(audit.Options{Sinks: sinks, FailClosed: c.FailClosed, Arguments: c.Arguments, Logger: log})
	s.closers.add("audit", s.audit.Close)
	return nil
}

// auditor is the audit log, nil without one.
func (s *Server) auditor() tools.Auditor {
	if s.audit == nil {
		return nil
	}
	return s.audit
}
