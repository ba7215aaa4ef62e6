package pluginhost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// measureEvery is how often a plugin's resource usage is measured.
const measureEvery = 250 * time.Millisecond

// watchLimits stops the plugin if it exceeds a limit, and records which limit that was. It returns once the plugin has
// exited.
func (r *runner) watchLimits(l config.PluginLimits) {
	if l.Memory == 0 && l.OpenFiles == 0 && l.Processes == 0 {
		return
	}
	p := r.process()
	measure := time.NewTicker(measureEvery)
	defer measure.Stop()
	for {
		select {
		case <-p.Done():
			return
		case <-measure.C:
		}
		if over := exceeded(l, measureTree(p.PID())); over != "" {
			r.mu.Lock()
			r.limit = over
			r.mu.Unlock()
			_ = p.Stop(context.Background(), 0) // on an error, the process is stuck in the kernel
			return
		}
	}
}

// treeUse holds the resources that a process and its descendants use.
type treeUse struct {
	memory           int64
	files, processes int
}

// exceeded returns a sentence about the exceeded limit and the setting for it, or "" if u exceeds none.
func exceeded(l config.PluginLimits, u treeUse) string {
	switch {
	case l.Memory > 0 && u.memory > l.Memory:
		return fmt.Sprintf("used %d MiB of memory; the limit is %d MiB (plugins.limits.memoryMiB)", u.memory>>20, l.Memory>>20)
	case l.OpenFiles > 0 && u.files > l.OpenFiles:
		return fmt.Sprintf("had %d file descriptors open; the limit is %d (plugins.limits.openFiles)", u.files, l.OpenFiles)
	case l.Processes > 0 && u.processes > l.Processes:
		return fmt.Sprintf("had %d processes; the limit is %d (plugins.limits.processes)", u.processes, l.Processes)
	}
	return ""
}

// measureTree measures the total usage of a process and its descendants. If there is no /proc, it returns zeros.
func measureTree(pid int) (total treeUse) {
	for waiting := []int{pid}; len(waiting) > 0; {
		pid := waiting[0]
		use, there := sandbox.ProcessUsage(pid)
		waiting = append(waiting[1:], childrenOf(pid)...)
		if !there {
			continue
		}
		dir := "/proc/" + strconv.Itoa(pid)
		files, _ := os.ReadDir(dir + "/fd") // empty once the process has exited
		total.memory += use.Memory
		total.files += len(files)
		total.processes++
	}
	return total
}

// childrenOf returns the children of all of a process's threads.
func childrenOf(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails only for a bad pattern
	for _, list := range lists {
		raw, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// lineRate limits the lines per second.
type lineRate struct {
	limit  int // 0 means no limit
	second time.Time
	lines  int
}

// admit returns the line if it is within the limit. In each second, it replaces the first line beyond the limit with a
// notice, and drops the others.
func (r *lineRate) admit(now time.Time, line []byte) []byte {
	if r.limit == 0 {
		return line
	}
	if now.Sub(r.second) >= time.Second {
		r.second, r.lines = now, 0
	}
	switch r.lines++; {
	case r.lines <= r.limit:
		return line
	case r.lines == r.limit+1:
		return fmt.Appendf(nil, "[WARN] this plugin may log %d lines per second (plugins.limits.logLinesPerSecond); dropping the rest of this second's lines\n", r.limit)
	}
	return nil
}
