package config

import (
	"fmt"
	"time"
)

// Audit configures where audit records go.
type Audit struct {
	File       string   `json:"file" reload:"restart"`  // absolute; "" for none
	Sinks      []Plugin `json:"sinks" reload:"applied"` // in the order of the file
	FailClosed bool     `json:"failClosed" reload:"restart"`
	Arguments  bool     `json:"arguments" reload:"restart"`

	MaxBytes  int64         `json:"rotateMegabytes" reload:"restart"` // bytes of the file; 0 for any size
	MaxAge    time.Duration `json:"rotateDays" reload:"restart"`      // age of the file; 0 for any age
	Retention time.Duration `json:"retentionDays" reload:"restart"`   // how long closed files are kept; 0 means forever
}

// On reports whether anything is recorded.
func (a Audit) On() bool { return a.File != "" || len(a.Sinks) > 0 }

type auditSection struct {
	File       string `json:"file"`
	Sinks      []any  `json:"sinks"`
	FailClosed bool   `json:"failClosed"`
	Arguments  bool   `json:"arguments"`

	RotateMegabytes int64 `json:"rotateMegabytes"`
	RotateDays      int   `json:"rotateDays"`
	RetentionDays   int   `json:"retentionDays"`
}

func (s auditSection) audit(base string) Audit {
	a := Audit{
		FailClosed: s.FailClosed, Arguments: s.Arguments,
		MaxBytes: s.RotateMegabytes << 20, MaxAge: days(s.RotateDays), Retention: days(s.RetentionDays),
	}
	if s.File != "" {
		a.File = absolute(base, s.File)
	}
	for i, section := range s.Sinks {
		a.Sinks = append(a.Sinks, plugin("audit", fmt.Sprintf("audit.sinks[%d]", i), section, base))
	}
	return a
}

func (k *check) checkAudit() {
	a := k.doc.Audit
	rotates := a.RotateMegabytes > 0 || a.RotateDays > 0
	if (rotates || a.RetentionDays > 0) && a.File == "" {
		k.add("audit", "rotateMegabytes, rotateDays and retentionDays require file")
	}
	if a.RetentionDays > 0 && !rotates {
		k.add("audit.retentionDays", "requires rotateMegabytes or rotateDays, because only closed files are deleted")
	}
	if a.FailClosed && a.File == "" && len(a.Sinks) == 0 {
		k.add("audit.failClosed", "requires file or sinks")
	}
	k.checkPlugins("audit", k.cfg.Audit.Sinks, a.Sinks)
}
