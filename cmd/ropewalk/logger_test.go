package main

import (
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestJSONLogLinesHaveTheUsualKeys(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	l, _ := newLogger(config.Log{Level: "info", Format: "json"}, &log)
	l.Named("apps").Warn("app state changed", "detail", `"@level":"x"`)
	entries := log.Entries()
	if len(entries) != 1 {
		t.Fatalf("logged %q", log.String())
	}
	e := entries[0]
	if e["level"] != "warn" || e["msg"] != "app state changed" || e["logger"] != "ropewalk.apps" || e["time"] == nil || e["detail"] != `"@level":"x"` {
		t.Errorf("%v", e)
	}
	if l.GetLevel() != hclog.Info {
		t.Error(l.GetLevel())
	}
}
