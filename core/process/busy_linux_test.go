package process_test

import (
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestAProgramIsBusyWhileItComputes(t *testing.T) {
	for script, want := range map[string]bool{"while :; do :; done": true, "sleep 60": false} {
		p, err := process.Start(process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		testkit.Eventually(t, script, func() bool { return p.Busy() == want })
		if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, script+", stopped", func() bool { return !p.Busy() })
	}
}
