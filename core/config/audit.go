package config

import "github.com/ropewalk/ropewalk/core"

// Audit is where records of what was done go.
type Audit struct {
	File       string // absolute; "" for none
	URL        string // of a collector; "" for none
	Token      core.Secret
	FailClosed bool
	Arguments  bool
}

type auditSection struct {
	File       string `json:"file"`
	URL        string `json:"url"`
	Token      string `json:"token"`
	FailClosed bool   `json:"failClosed"`
	Arguments  bool   `json:"arguments"`
}

func (s auditSection) audit(base string) Audit {
	a := Audit{URL: s.URL, Token: core.Secret(s.Token), FailClosed: s.FailClosed, Arguments: s.Arguments}
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
	if a.FailClosed && a.File == "" && a.URL == "" {
		k.add("audit.failClosed", "needs file or url beside it")
	}
}
