package sandbox

import (
	"os/exec"
	"testing"
)

// A shim searches for unlimited processes until it finds none. One that has inherited its limits must not count: an app
// may start processes faster than they are found.
func TestAProcessIsLimitedOnce(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := func(tasks int) (lowered bool) {
		t.Helper()
		done := make(chan error)
		go func() {
			var err error
			lowered, err = (&Profile{Limits: Limits{Tasks: tasks, OpenFiles: 50}}).LimitPrograms(cmd.Process.Pid)
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return lowered
	}
	for i, step := range []struct {
		tasks int
		want  bool
	}{{100, true}, {100, false}, {200, false}, {90, true}, {90, false}} {
		if got := limit(step.tasks); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if limit(80) {
		t.Error("a process that has ended was limited")
	}
}
