package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// crowdOfApps is the number of apps that are started to measure processor time.
const crowdOfApps = 300

// fewProcesses makes room for that many apps on a machine with 32,768 threads.
const fewProcesses = 4

// apps measures what the server adds to each app, namely its shim: memory and tasks while the app is idle, and
// the processor time of starting many apps.
func (b *bench) apps(ctx context.Context) error {
	for _, level := range []string{"landlock", "namespaces"} {
		for _, n := range []int{20, 100} {
			ours, err := b.shims(ctx, b.o.Service, level, n)
			if err != nil {
				return err
			}
			var other shims
			if b.o.Against != "" {
				if other, err = b.shims(ctx, b.o.Against, level, n); err != nil {
					return err
				}
			}
			what := fmt.Sprintf("%d idle apps (%s): ", n, level)
			b.limit(what+"private memory of a shim", 2, "MiB", ours.memory, fmt.Sprintf("%.1f MiB", ours.memory), other.text("%.1f MiB", other.memory))
			b.limit(what+"tasks of a shim", 6, "", ours.tasks, fmt.Sprintf("%.0f", ours.tasks), other.text("%.0f", other.tasks))
		}
	}
	if b.o.Quick || b.o.Against == "" {
		return nil
	}
	ours, err1 := b.shims(ctx, b.o.Service, "namespaces", crowdOfApps)
	other, err2 := b.shims(ctx, b.o.Against, "namespaces", crowdOfApps)
	b.limit(fmt.Sprintf("processor time to start %d apps: against the other build", crowdOfApps), 0.5, "", ours.cpu/other.cpu,
		fmt.Sprintf("%.1f s", ours.cpu), fmt.Sprintf("%.1f s", other.cpu))
	return errors.Join(err1, err2)
}

// shims contains the median memory and tasks of all shims, and the processor time of the server and its shims.
type shims struct {
	memory, tasks, cpu float64 // MiB, number, seconds
}

func (s shims) text(format string, n float64) string {
	if s == (shims{}) {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// shims starts a server with n apps at a sandbox level and waits until all of them are running and idle.
func (b *bench) shims(ctx context.Context, executable, level string, n int) (s shims, err error) {
	defer b.stopAll()
	name := fmt.Sprintf("apps-%s-%d", level, n)
	if executable != b.o.Service {
		name += otherBuild
	}
	p, err := b.startService(ctx, executable, service{name: name, bundle: sdkBundle, apps: n, sandbox: map[string]any{"level": level, "processes": fewProcesses}})
	if err != nil {
		return s, err
	}
	if err := allRunning(ctx, strings.TrimSuffix(p.url, "/mcp")+"/v1/apps", n); err != nil {
		return s, err
	}
	var found []int
	for _, pid := range treeOf(p.cmd.Process.Pid) {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.HasPrefix(string(comm), "ropewalk-shim") {
			found = append(found, pid)
		}
		if pid == p.cmd.Process.Pid || slices.Contains(found, pid) {
			s.cpu += cpuSeconds(pid)
		}
	}
	if len(found) < n {
		return s, fmt.Errorf("found %d shims of %d apps", len(found), n)
	}
	time.Sleep(settleTime)
	var memory, tasks []float64
	for _, pid := range found {
		private, err := memoryOf(pid, "Private_")
		if err != nil {
			return s, err
		}
		memory, tasks = append(memory, private), append(tasks, tasksOf(pid))
	}
	s.memory, s.tasks = median(memory), median(tasks)
	return s, nil
}

// listedApp is an app in the list of a server.
type listedApp struct {
	Name, Status string
	Asleep       bool
}

// listedApps returns the apps of a server.
func listedApps(ctx context.Context, url string) ([]listedApp, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Workspace-Id", workspace)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	var response struct{ Apps []listedApp }
	err = json.NewDecoder(resp.Body).Decode(&response)
	return response.Apps, errors.Join(err, resp.Body.Close())
}

// allRunning waits until n apps are running.
func allRunning(ctx context.Context, url string, n int) error {
	limit, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		apps, err := listedApps(limit, url)
		running := 0
		for _, a := range apps {
			if a.Status == "running" {
				running++
			}
		}
		if running >= n {
			return nil
		}
		select {
		case <-limit.Done():
			return errors.Join(fmt.Errorf("%d of %d apps are running: %w", running, n, limit.Err()), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// treeOf returns a process and all its descendants.
func treeOf(pid int) []int {
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, childrenOf(tree[i])...)
	}
	return tree
}

func tasksOf(pid int) float64 {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return float64(len(tasks))
}

func childrenOf(pid int) (children []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the list is missing if the thread has exited
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// cpuSeconds returns the processor time of a process and of its children that have exited.
func cpuSeconds(pid int) (sum float64) {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	for _, column := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		if column < len(fields) {
			n, _ := strconv.ParseFloat(fields[column], 64)
			sum += n / ticks
		}
	}
	return sum
}

// memoryOf returns the memory of a process in MiB. The kind "Private_" counts only private memory, and "Pss:" also counts
// the process's share of shared memory.
func memoryOf(pid int, kind string) (sum float64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, kind) && len(fields) > 1 {
			n, _ := strconv.ParseFloat(fields[1], 64)
			sum += n / 1024
		}
	}
	return sum, err
}
