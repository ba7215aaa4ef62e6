//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// confined returns a command in a sandbox with one writable directory.
func confined(t testing.TB, level sandbox.Level, kind string, args ...string) process.Command {
	t.Helper()
	if level == sandbox.LevelNamespaces {
		testenv.NeedsNamespaces(t)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	c := command(kind, args...)
	c.Path, c.Dir = exe, data
	c.Sandbox = &sandbox.Profile{Level: level, Read: append(sandbox.SystemPaths(), exe), Write: []string{data}}
	return c
}

func TestAConfinedProgramRuns(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		t.Run(level.String(), func(t *testing.T) {
			p := start(t, confined(t, level, "args", "one", "two"))
			if got := output(t, p); got != "one\ntwo\n" {
				t.Errorf("it printed %q", got)
			}
			if p.Err() != nil {
				t.Error(p.Err())
			}
		})
	}
}

// With GODEBUG=inittrace=1, a Go program writes to its standard error when it starts. The shim is a Go program, and the
// program that it starts here is not.
func TestTheEnvironmentOfAConfinedProgramDoesNotReachItsShim(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		t.Run(level.String(), func(t *testing.T) {
			c := confined(t, level, "")
			odd := "ODD=\xff\n\"" + strings.Repeat("x", 100_000)
			c.Path, c.Args = "env", []string{"-0"}
			c.Env = []string{"PATH=/usr/bin:/bin", "GODEBUG=inittrace=1", "LD_PRELOAD=/nowhere/evil.so", odd, odd + "2", odd + "3"}
			var stderr strings.Builder
			c.Stderr = &stderr
			p := start(t, c)
			got := output(t, p)
			<-p.Done()
			if want := strings.Join(c.Env, "\x00") + "\x00"; got != want {
				t.Errorf("the program got %.300q", got)
			}
			if strings.Contains(stderr.String(), "init ") || strings.Count(stderr.String(), "evil.so") != 1 {
				t.Errorf("the shim had the environment of its program: %s", stderr.String())
			}
		})
	}
}

func BenchmarkStartConfined(b *testing.B) {
	for _, level := range []sandbox.Level{sandbox.LevelNone, sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		b.Run(level.String(), func(b *testing.B) {
			c := confined(b, level, "")
			c.Path, c.Args = "/bin/true", nil
			for b.Loop() {
				p, err := process.Start(c)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
				_ = p.Stdout().Close()
			}
		})
	}
}

// BenchmarkStartCost reports how much longer a start takes in the sandbox, including the end of the process.
// The starts alternate, so that other work on the machine affects all of them.
func BenchmarkStartCost(b *testing.B) {
	levels := []sandbox.Level{sandbox.LevelNone, sandbox.LevelLandlock, sandbox.LevelNamespaces}
	took := make([][]time.Duration, len(levels))
	commands := make([]process.Command, len(levels))
	for i, level := range levels {
		commands[i] = confined(b, level, "")
		commands[i].Path, commands[i].Args = "/bin/true", nil
	}
	for b.Loop() {
		for i := range levels {
			began := time.Now()
			p, err := process.Start(commands[i])
			if err != nil {
				b.Fatal(err)
			}
			<-p.Done()
			took[i] = append(took[i], time.Since(began))
			_ = p.Stdout().Close()
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return took[i][len(took[i])/2].Seconds() * 1000
	}
	for i, level := range levels[1:] {
		b.ReportMetric(median(i+1)-median(0), "ms-more-at-"+level.String())
		b.ReportMetric(median(i+1)/median(0), "times-at-"+level.String())
	}
}
