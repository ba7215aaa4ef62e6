package table

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticks is the unit of CPU times in /proc, per second: USER_HZ, which is 100 on Linux.
const ticks = 100

// process is a server that was started for the benchmark.
type process struct {
	cmd *exec.Cmd
	url string // URL of its /mcp endpoint
}

// start runs a program and waits until find returns its URL for a line of its standard output or standard
// error.
func start(ctx context.Context, find func(line string) string, path string, args ...string) (*process, error) {
	return startWith(ctx, runEnv{}, find, path, args...)
}

// runEnv is the environment of a program. The zero value is this process's environment.
type runEnv struct {
	as  *syscall.Credential // run as another user; nil means the same user
	dir string              // the working directory; "" means the same
	env []string            // variables in addition to this process's
}

// startWith is like start, in the given environment.
func startWith(ctx context.Context, in runEnv, find func(line string) string, path string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // executables that the operator names
	cmd.Dir, cmd.SysProcAttr = in.dir, &syscall.SysProcAttr{Credential: in.as}
	cmd.Env = append(os.Environ(), in.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	_ = w.Close()
	p := &process{cmd: cmd}
	lines := bufio.NewScanner(r)
	var output []string
	for p.url == "" && lines.Scan() {
		output = append(output, lines.Text())
		p.url = find(lines.Text())
	}
	if p.url == "" {
		p.stop()
		return nil, fmt.Errorf("%s %s exited before it started listening:\n%s", path, strings.Join(args, " "), strings.Join(output, "\n"))
	}
	go func() {
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
	}()
	return p, nil
}

// stop stops the process and waits until it has exited.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	force := time.AfterFunc(15*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer force.Stop()
	_ = p.cmd.Wait()
}

// cpu returns the CPU time that the process has used, without its children.
func (p *process) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the text before it may contain anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("/proc/<pid>/stat is too short")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks, errors.Join(err1, err2)
}

// memory returns the resident memory of the process in bytes.
func (p *process) memory() (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/<pid>/status has no VmRSS")
}
