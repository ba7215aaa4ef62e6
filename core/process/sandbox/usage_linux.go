package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clockTicks is the unit of processor time in /proc, which is the same on every Linux system.
const clockTicks = 100

// ProcessUsage returns the usage of one process, according to /proc. Memory includes the pages that the process, or
// processes that share them, have written, but not library code. It also includes page tables, because a process may
// have any number of them for memory that it only reads. Shared memory is counted for each process; SharedFairly is
// exact.
func ProcessUsage(pid int) (u Usage, ok bool) {
	u, _, ok = new(Meter).Usage(pid)
	return u, ok
}

// Meter reads /proc. It reuses its buffers: a shim measures its app every WatchInterval, and garbage would be most of
// the memory of an idle shim.
type Meter struct {
	path    []byte
	content []byte
	threads []string
}

// Usage is like ProcessUsage. zombieOf is the parent of a process that has ended and was not waited for, and 0
// otherwise.
func (m *Meter) Usage(pid int) (u Usage, zombieOf int, ok bool) {
	status := m.read(pid, "status")
	if len(status) == 0 {
		return u, 0, false
	}
	u.Memory, u.Processes = kibibytes(status, "RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:", "HugetlbPages:"), 1
	u.Threads = threads(status)
	stat := m.read(pid, "stat")
	u.CPUTime, zombieOf = statTimes(stat[bytes.LastIndexByte(stat, ')')+1:])
	return u, zombieOf, true
}

// Descendants adds the processes below root to found, generation by generation. ok is false if this kernel does not
// list children. A process is missing if one of its siblings ended at the same moment: it will be found the next
// time.
func (m *Meter) Descendants(root int, found []int) (_ []int, ok bool) {
	first := len(found)
	found, ok = m.children(root, found)
	for i := first; i < len(found); i++ {
		found, _ = m.children(found[i], found)
	}
	return found, ok
}

// children adds the children of all threads of a process.
func (m *Meter) children(pid int, found []int) (_ []int, ok bool) {
	dir, err := m.open(pid, 0, "task")
	if err != nil {
		return found, false
	}
	m.threads = m.threads[:0]
	for {
		n, err := unix.ReadDirent(dir, m.buffer(0))
		if err != nil || n == 0 {
			break
		}
		_, _, m.threads = unix.ParseDirent(m.content[:n], -1, m.threads)
	}
	_ = unix.Close(dir)
	for _, name := range m.threads {
		thread, _ := strconv.Atoi(name)
		list, err := m.open(pid, thread, "children")
		if err != nil {
			continue
		}
		ok = true
		for child := range bytes.FieldsSeq(m.readAll(list)) {
			if id, err := strconv.Atoi(string(child)); err == nil {
				found = append(found, id)
			}
		}
	}
	return found, ok
}

// read returns the content of a file of a process. It is valid until the next call.
func (m *Meter) read(pid int, name string) []byte {
	fd, err := m.open(pid, 0, name)
	if err != nil {
		return nil
	}
	return m.readAll(fd)
}

// open opens a file of a process, or of one of its threads. It makes the system call directly, because unix.Open copies
// the path.
func (m *Meter) open(pid, thread int, name string) (int, error) {
	m.path = strconv.AppendInt(append(m.path[:0], "/proc/"...), int64(pid), 10)
	if thread != 0 {
		m.path = strconv.AppendInt(append(m.path, "/task/"...), int64(thread), 10)
	}
	m.path = append(append(append(m.path, '/'), name...), 0)
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&m.path[0])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0) // AT_FDCWD
		if errno == 0 {
			return int(fd), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// buffer returns the rest of the buffer, which is never empty.
func (m *Meter) buffer(used int) []byte {
	if used == len(m.content) {
		m.content = append(m.content, make([]byte, 4096)...)
	}
	return m.content[used:]
}

// readAll reads a file and closes it.
func (m *Meter) readAll(fd int) []byte {
	length := 0
	for {
		n, err := unix.Read(fd, m.buffer(length))
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		length += n
	}
	_ = unix.Close(fd)
	return m.content[:length]
}

// SharedFairly returns the memory of a process as ProcessUsage does, but divides shared memory among the processes
// that share it. The kernel has to look at each page for that. ok is false if the process has hidden itself or ended.
func SharedFairly(pid int) (memory int64, ok bool) {
	rollup, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, false
	}
	return kibibytes(rollup, "Pss_Anon:", "Pss_Shmem:", "SwapPss:", "Private_Hugetlb:", "Shared_Hugetlb:") + kibibytes(new(Meter).read(pid, "status"), "VmPTE:"), true
}

// IPCMemory returns the memory of the System V objects in this IPC namespace that no process has mapped, in bytes:
// shared memory that is not attached, semaphores and messages. processes is how many may use a semaphore, because the
// kernel keeps a value for each of them (SEM_UNDO).
func IPCMemory(processes int) int64 {
	return detachedMemory() + semaphores()*int64(semaphoreBytes+undoBytes*processes) + messages()
}

// The memory that the kernel uses for each object: struct sem, a value in struct sem_undo, and the header of a message.
const (
	semaphoreBytes = 64
	undoBytes      = 2
	messageBytes   = 64
)

// semaphores returns how many semaphores there are (semctl(2), SEM_INFO).
func semaphores() int64 {
	const semInfo = 19
	var info struct{ _, _, _, _, _, _, _, sets, _, semaphores int32 }
	if _, _, errno := unix.Syscall6(unix.SYS_SEMCTL, 0, 0, semInfo, uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
		return 0 // the kernel has no System V IPC
	}
	return int64(info.semaphores) + int64(info.sets)
}

// messages returns the memory of all messages (msgctl(2), MSG_INFO).
func messages() int64 {
	const msgInfo = 12
	var info struct {
		_, messages, _, _, _, _, bytes int32
		_                              uint16
	}
	if _, _, errno := unix.Syscall(unix.SYS_MSGCTL, 0, msgInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return 0
	}
	return int64(info.bytes) + int64(info.messages)*messageBytes
}

func detachedMemory() int64 {
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

// statTimes reads the user and system time from the fields of /proc/<pid>/stat after the name, and the parent of
// a zombie.
func statTimes(stat []byte) (cpu time.Duration, zombieOf int) {
	const state, parent, user, system = 0, 1, 11, 12
	column, zombie := 0, false
	for field := range bytes.FieldsSeq(stat) {
		switch n, _ := strconv.ParseInt(string(field), 10, 64); column {
		case state:
			zombie = string(field) == "Z"
		case parent:
			if zombie {
				zombieOf = int(n)
			}
		case user, system:
			cpu += time.Duration(n) * time.Second / clockTicks
		}
		column++
	}
	return cpu, zombieOf
}
