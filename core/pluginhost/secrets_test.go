package pluginhost

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestSecretsInSettingsAreFound(t *testing.T) {
	got := secretsOf([]byte(`{"url": "redis://app:p%40ss@host:1/0", "clientSecret": "s3cr3t-value", "tls": {"password": "a\"b12"},
		"roles": ["member"], "tokens": [{"value": "tok-1"}, {"value": "no"}], "issuer": "https://id.example"}`))
	want := []string{"s3cr3t-value", `a\"b12`, "p%40ss", `a"b12`, "p@ss", "tok-1"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRedactedErrorsContainNoSecretsAndKeepTheirMeaning(t *testing.T) {
	hidden := secretsOf([]byte(`{"password": "hunter22"}`))
	err := hidden.redactError(fmt.Errorf("%w: dial app:hunter22@host", plugins.ErrUnavailable))
	if strings.Contains(err.Error(), "hunter22") || !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	wrong := &plugins.ConfigError{}
	wrong.Add("password", "%q is too short", "hunter22")
	if err := hidden.redactError(wrong); strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	} else if problems, ok := errors.AsType[*plugins.ConfigError](err); !ok || strings.Contains(problems.Problems[0].Message, "hunter22") {
		t.Errorf("got %+v", problems)
	}
}

func TestAPluginIsDegradedWhenMostOfItsRecentCallsFailed(t *testing.T) {
	var r recentCalls
	for i := range 300 {
		r.add(10, i%3 != 0)
	}
	if _, _, degraded := r.figures(); degraded != "of the last 20 calls, 14 failed and 0 took longer than 2s" {
		t.Errorf("two of three calls failed, and it is degraded because %q", degraded)
	}
	for range 20 {
		r.add(30, false)
	}
	if p50, p99, degraded := r.figures(); degraded != "" || p50 != 10 || p99 != 30 {
		t.Errorf("after 20 good calls: %v, %v, degraded %q", p50, p99, degraded)
	}
}
