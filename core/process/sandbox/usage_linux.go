package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// clockTicks is the unit of processor time in /proc, which is the same on every Linux system.
const clockTicks = 100

// ProcessUsage returns what one process uses, according to /proc. Memory includes only pages that the process,
// or processes that share them, have written, not library code. Shared memory is counted for each process;
// SharedFairly is exact.
func ProcessUsage(pid int) (u Usage, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, false
	}
	u.Memory, u.Processes = kibibytes(status, "RssAnon:", "RssShmem:", "VmSwap:"), 1
	u.Threads = threads(status)
	if stat, err := os.ReadFile(dir + "/stat"); err == nil {
		u.CPUTime = cpuTime(stat[bytes.LastIndexByte(stat, ')')+1:])
	}
	return u, true
}

// SharedFairly returns the memory of a process as ProcessUsage does, but divides shared memory among the
// processes that share it. The kernel has to look at each page for that. ok is false when the process has
// hidden itself or ended.
func SharedFairly(pid int) (memory int64, ok bool) {
	rollup, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, false
	}
	return kibibytes(rollup, "Pss_Anon:", "Pss_Shmem:", "SwapPss:"), true
}

// DetachedMemory returns the System V shared memory in this IPC namespace that no process has attached, in
// bytes.
func DetachedMemory() int64 {
	const attached, resident = 6, 14 // the columns
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	var sum int64
	for line := range bytes.Lines(segments) {
		fields := bytes.Fields(line)
		if len(fields) > resident && string(fields[attached]) == "0" {
			n, _ := strconv.ParseInt(string(fields[resident]), 10, 64)
			sum += n
		}
	}
	return sum
}

// kibibytes returns the sum of lines such as "RssAnon:   12 kB", in bytes.
func kibibytes(lines []byte, names ...string) (sum int64) {
	for line := range bytes.Lines(lines) {
		for _, name := range names {
			if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
				n, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
}

// threads reads the line "Threads: 12" of /proc/<pid>/status.
func threads(status []byte) int {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("Threads:")); ok {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(rest)))
			return n
		}
	}
	return 0
}

// cpuTime reads the user and system time from the fields of /proc/<pid>/stat after the name.
func cpuTime(stat []byte) time.Duration {
	const user, system = 11, 12
	fields := bytes.Fields(stat)
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.ParseInt(string(fields[user]), 10, 64)
	s, _ := strconv.ParseInt(string(fields[system]), 10, 64)
	return time.Duration(u+s) * time.Second / clockTicks
}
