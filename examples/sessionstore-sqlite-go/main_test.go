package main

import (
	"testing"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestConformance(t *testing.T) {
	conn := plugintest.Configured(t, sessionstore.Plugin(&store{}), "{}")
	subject, err := sessionstoretest.Connected(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), subject)
}
