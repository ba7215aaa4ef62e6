package postgres

import (
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestTheDefaultsAreTheDocumentedOnes(t *testing.T) { // docs/adapters.md
	want := Config{Table: "ropewalk_sessions", Timeout: plugins.Duration(2 * time.Second), PurgeEvery: plugins.Duration(time.Minute)}
	if got := defaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheTimeoutLimitsConnectingAndThePasswordOverridesTheURL(t *testing.T) {
	c := Config{URL: "postgres://user:one@localhost/db", Password: "two", Timeout: plugins.Duration(3 * time.Second)}
	pool, err := c.pool()
	if err != nil {
		t.Fatal(err)
	}
	if got := pool.ConnConfig.ConnectTimeout; got != 3*time.Second {
		t.Errorf("connecting may take %v", got)
	}
	if pool.ConnConfig.Password != "two" {
		t.Error("the password of the URL is used")
	}
}
