package plugins

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// line is a command that has printed its first line.
type line struct {
	*exec.Cmd
	text string
}

// startAndReadLine starts ropewalk and waits until it has printed one line.
func startAndReadLine(t *testing.T, environ []string, args ...string) line {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Env = append(os.Environ(), environ...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	text, err := output.ReadString('\n')
	if err != nil {
		t.Errorf("%v printed no line: %v", args, err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, output)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	return line{cmd, strings.TrimSpace(text)}
}

func TestNoCallFailsWhileADebuggedPluginIsAttachedDetachedOrKilled(t *testing.T) {
	redis := testenv.StartRedis(t)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("sessionStore: {adapter: redis, url: \"redis://"+redis.Addr+"/0\"}\n"))
	s.WaitForStatus(t, "sample", "running")
	l := harness.StartLoad(t, 100, s.OpenSession(t), s.OpenSession(t))
	for _, end := range []string{"detach", "kill the command", "kill the plugin"} {
		debugged := startAndReadLine(t, []string{"ROPEWALK_PLUGIN=sessionstore"}, "plugin", "serve", "sessionstore", "redis")
		command := startAndReadLine(t, nil, "plugin", "attach", "sessionstore", debugged.text, "--home", s.Home)
		if !strings.HasPrefix(command.text, "Attached sessionstore redis") {
			t.Fatalf("attach printed %q", command.text)
		}
		if said, _ := harness.Command(t, nil, "plugin", "list", "--home", s.Home); !strings.Contains(said, "attached") {
			t.Errorf("plugin list printed %s", said)
		}
		l.WaitForCalls(t, 20)
		s.OpenSession(t) // uses the attached plugin
		var err error
		switch end {
		case "detach":
			err = command.Process.Signal(syscall.SIGINT)
		case "kill the command":
			err = command.Process.Kill()
		default:
			err = debugged.Process.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		s.OpenSession(t) // works while the plugin is being detached
		if !testkit.Within(harness.Timeout, func() bool {
			said, status := harness.Command(t, nil, "plugin", "list", "--home", s.Home)
			return status == 0 && !strings.Contains(said, "attached")
		}) {
			t.Errorf("%s: the plugin is still attached", end)
		}
		l.WaitForCalls(t, 20)
	}
	l.Stop()
	for _, failure := range l.Failures {
		t.Errorf("a call failed: %v", failure.Err)
	}
	t.Logf("%d calls, 3 attachments", l.Calls)
}
