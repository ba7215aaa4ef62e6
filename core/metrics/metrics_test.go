package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/metrics"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

func TestTheCurrentFiguresOfEveryPackageAreWritten(t *testing.T) {
	sessions := 3
	m := metrics.New(metrics.Sources{
		Version: "1.2.3", Started: time.Now(),
		Plugins: func() []pluginhost.Status {
			return []pluginhost.Status{
				{Kind: plugins.KindAuth, Name: "oidc", Adapter: "oidc", State: "running", Restarts: 2, Calls: 40, Failures: 1},
				{Kind: plugins.KindRegistry, Name: "local", Adapter: "directory", State: pluginhost.Restarting},
			}
		},
		Apps:     func() map[core.State]int { return map[core.State]int{core.StateRunning: 5} },
		Sessions: func() int { return sessions },
	})
	look := func() string {
		t.Helper()
		text, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := look()
	for _, want := range []string{
		`ropewalk_info{version="1.2.3"} 1`,
		`ropewalk_mcp_sessions 3`,
		`ropewalk_apps{state="running"} 5`, `ropewalk_apps{state="dead"} 0`,
		`ropewalk_plugin_up{adapter="oidc",kind="auth",name="oidc"} 1`,
		`ropewalk_plugin_up{adapter="directory",kind="registry",name="local"} 0`,
		`ropewalk_plugin_restarts_total{adapter="oidc",kind="auth",name="oidc"} 2`,
		`ropewalk_plugin_calls_total{adapter="oidc",kind="auth",name="oidc"} 40`,
		`ropewalk_plugin_failures_total{adapter="oidc",kind="auth",name="oidc"} 1`,
		"# TYPE ropewalk_plugin_restarts_total counter", "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not there:\n%s", want, text)
		}
	}
	if sessions = 4; !strings.Contains(look(), "ropewalk_mcp_sessions 4") {
		t.Error("a second look shows the first one's figures")
	}
}
