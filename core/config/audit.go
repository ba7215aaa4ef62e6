package config

import (
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Audit is where records of what was done go.
type Audit struct {
	File       string // absolute; "" for none
	URL        string // of a collector; "" for none
	Token      core.Secret
	FailClosed bool
	Arguments  bool

	MaxBytes  int64         // of the file; 0 for any size
	MaxAge    time.Duration // of the file; 0 for any age
	Retention time.Duration // of closed files; 0 means for ever
}

type auditSection struct {
	File       string `json:"file"`
	URL        string `json:"url"`
	Token      string `json:"token"`
	FailClosed bool   `json:"failClosed"`
	Arguments  bool   `json:"arguments"`

	RotateMegabytes int64 `json:"rotateMegabytes"`
	RotateDays      int   `json:"rotateDays"`
	RetentionDays   int   `json:"retentionDays"`
}

func (s auditSection) audit(base string) Audit {
	a := Audit{
		URL: s.URL, Token: core.Secret(s.Token), FailClosed: s.FailClosed, Arguments: s.Arguments,
		MaxBytes: s.RotateMegabytes << 20, MaxAge: days(s.RotateDays), Retention: days(s.RetentionDays),
	}
	if s.File != "" {
		a.File = absolute(base, s.File)
	}
	return a
}

func (k *check) checkAudit() {
	a := k.doc.Audit
	if a.URL != "" {
		if _, err := webAddress(a.URL); err != nil {
			k.add("audit.url", "%v", err)
		}
	}
	if a.Token != "" && a.URL == "" {
		k.add("audit.token", "needs url beside it")
	}
	rotates := a.RotateMegabytes > 0 || a.RotateDays > 0
	if (rotates || a.RetentionDays > 0) && a.File == "" {
		k.add("audit", "rotateMegabytes, rotateDays and retentionDays need file beside them")
	}
	if a.RetentionDays > 0 && !rotates {
		k.add("audit.retentionDays", "needs rotateMegabytes or rotateDays beside it: only closed files are deleted")
	}
	if a.FailClosed && a.File == "" && a.URL == "" {
		k.add("audit.failClosed", "needs file or url beside it")
	}
}
