package fakeapps_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
)

var _ tools.Apps = (*fakeapps.Apps)(nil)

func TestNotificationsReachTheListenersOfTheirWorkspace(t *testing.T) {
	var a fakeapps.Apps
	var got []string
	stop := a.Listen("ws_a", func(n apps.Notification) { got = append(got, n.Server) })
	a.Notify("ws_a", apps.Notification{Server: "one"})
	a.Notify("ws_b", apps.Notification{Server: "two"})
	stop()
	a.Notify("ws_a", apps.Notification{Server: "three"})
	if len(got) != 1 || got[0] != "one" {
		t.Errorf("the listeners got %q", got)
	}
}
