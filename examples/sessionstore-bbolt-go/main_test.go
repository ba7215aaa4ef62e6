package main

import (
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestMain(m *testing.M) { plugintest.Main(m, main) }

func TestConformance(t *testing.T) {
	conn := plugintest.Start(t, plugins.KindSessionStore, "{}")
	subject, err := sessionstoretest.Connected(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), subject)
}
