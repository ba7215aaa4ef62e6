package main

import (
	"testing"

	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestConformance(t *testing.T) {
	conn := plugintest.Configured(t, sessionstore.Plugin(&store{}), "{}")
	plugintest.Run(t, sessionstoretest.Checks(), sessionstoretest.Subject{Store: sessionstore.Client(conn)})
}
