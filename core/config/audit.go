package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Audit is where records of what was done go.
type Audit struct {
	File       string      // absolute; "" for none
	Sinks      []AuditSink // in the order of the file, after the collector of audit.url
	FailClosed bool
	Arguments  bool

	MaxBytes  int64         // of the file; 0 for any size
	MaxAge    time.Duration // of the file; 0 for any age
	Retention time.Duration // of closed files; 0 means for ever
}

// AuditSink is one plugin that keeps records.
type AuditSink struct {
	Plugin
	Name string // what the operator calls it, by default the adapter's name; unique
}

// On reports whether anything is recorded.
func (a Audit) On() bool { return a.File != "" || len(a.Sinks) > 0 }

type auditSection struct {
	File       string `json:"file"`
	URL        string `json:"url"`
	Token      string `json:"token"`
	Sinks      []any  `json:"sinks"`
	FailClosed bool   `json:"failClosed"`
	Arguments  bool   `json:"arguments"`

	RotateMegabytes int64 `json:"rotateMegabytes"`
	RotateDays      int   `json:"rotateDays"`
	RetentionDays   int   `json:"retentionDays"`
}

// collector is the name of the sink that audit.url stands for.
const collector = "collector"

func (s auditSection) audit(base string) Audit {
	a := Audit{
		FailClosed: s.FailClosed, Arguments: s.Arguments,
		MaxBytes: s.RotateMegabytes << 20, MaxAge: days(s.RotateDays), Retention: days(s.RetentionDays),
	}
	if s.File != "" {
		a.File = absolute(base, s.File)
	}
	if s.URL != "" { // short for the built-in sink http
		settings := map[string]string{"url": s.URL}
		if s.Token != "" {
			settings["token"] = s.Token
		}
		if raw, err := json.Marshal(settings); err == nil {
			a.Sinks = append(a.Sinks, AuditSink{Name: collector, Plugin: Plugin{Adapter: "http", Settings: NewSettings(raw), At: "audit"}})
		}
	}
	for i, section := range s.Sinks {
		keys, _ := section.(map[string]any)
		p := plugin("audit", fmt.Sprintf("audit.sinks[%d]", i), section, base)
		a.Sinks = append(a.Sinks, AuditSink{Name: cmp.Or(text(keys, "name"), p.Adapter), Plugin: p})
	}
	return a
}

func (k *check) checkAuditSinks() {
	first := map[string]string{} // the path by name
	sinks := k.cfg.Audit.Sinks
	if k.doc.Audit.URL != "" {
		first[sinks[0].Name] = "audit.url"
		sinks = sinks[1:]
	}
	for i, sink := range sinks {
		keys, _ := k.doc.Audit.Sinks[i].(map[string]any)
		k.checkPlugin("audit", sink.At, sink.Plugin, keys)
		if other, twice := first[sink.Name]; twice && sink.Name != "" {
			k.add(sink.At+".name", "%s is the name of %s already; give one of them another name", k.shown(sink.At+".name", sink.Name), other)
		}
		first[sink.Name] = sink.At
	}
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
	if a.FailClosed && a.File == "" && a.URL == "" && len(a.Sinks) == 0 {
		k.add("audit.failClosed", "needs file, url or sinks beside it")
	}
	k.checkAuditSinks()
}
