package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// clockTicks is the unit of processor time in /proc, which is the same on every Linux.
const clockTicks = 100

// ProcessUsage is what one process uses, by its files in /proc. Memory that processes share, such as the
// code of libraries, is not counted.
func ProcessUsage(pid int) (u Usage, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return u, false
	}
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return u, false
	}
	resident, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
	if err1 != nil || err2 != nil {
		return u, false
	}
	u.Memory, u.Processes = (resident-shared)*int64(os.Getpagesize()), 1
	if stat, err := os.ReadFile(dir + "/stat"); err == nil {
		u.CPUTime = cpuTime(stat[bytes.LastIndexByte(stat, ')')+1:])
	}
	return u, true
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
