package sandbox

import (
	"fmt"
	"time"
)

// Profile is what the process tree of one app may use. Paths are absolute.
type Profile struct {
	Level Level `json:"level"`

	Read  []string `json:"read"`           // files and directories to read and execute, with all below them
	Write []string `json:"write"`          // directories to read, write and execute
	Hide  []string `json:"hide,omitempty"` // paths that stay closed although Read covers them

	// Exact are paths of Read and Write that are opened where they are, or not at all: people granted them, and no part of
	// them may have become a symbolic link.
	Exact []string `json:"exact,omitempty"`

	// Mapped are paths of Read and Write of which the app sees the owner's files as its own, at LevelNamespaces.
	Mapped []Mapped `json:"mapped,omitempty"`

	// Layers are directories of Read that the app may also change, at LevelNamespaces and where the file
	// systems allow it: what it writes is kept apart, and the directory itself stays as it is.
	Layers []Layer `json:"layers,omitempty"`

	// UID is the user and group id that the app runs as; 0 is the server's own. It takes a server that runs as root.
	// Group is a further group, at LevelLandlock: the one that may pass through the directories above the app's.
	UID   int `json:"uid,omitempty"`
	Group int `json:"group,omitempty"`

	// Metadata lets it change the mode, owner and times of files by their path at LevelLandlock, too, where that
	// is not bound to Write. Programs that install others need it.
	Metadata bool `json:"metadata,omitempty"`

	Network Network `json:"network"`
	Limits  Limits  `json:"limits"`

	Owner Owner `json:"owner"` // set by Attributes

	nameServers []string // of this machine, read before the file tree is replaced
}

// Mapped is a path that is shown by a mount of its own.
type Mapped struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
	FD    int    `json:"fd"` // of the mount, in the shim
}

// Layer is a directory with a private layer of changes.
type Layer struct {
	Dir   string `json:"dir"`
	Upper string `json:"upper"` // the changes; the directory exists
	Work  string `json:"work"`  // for the kernel; on the same file system, the directory exists
}

// Owner is the user that the server runs as.
type Owner struct{ UID, GID int }

// Limits bound what the process tree of an app may use. Zero is no limit.
type Limits struct {
	Memory    int64   `json:"memory,omitempty"`    // bytes of private memory, of the whole tree
	Processes int     `json:"processes,omitempty"` // processes of the tree
	OpenFiles int     `json:"openFiles,omitempty"` // descriptors of one process
	FileSize  int64   `json:"fileSize,omitempty"`  // bytes of one file
	CPU       float64 `json:"cpu,omitempty"`       // processors; the tree is paused when it uses more

	// Tasks bounds how many threads and processes there can be before one more cannot be started: of the tree, or of
	// the server's user when the kernel counts the tree among the user's (OwnTasks).
	Tasks int `json:"tasks,omitempty"`
}

// OwnTasks reports whether the kernel counts the threads and processes of the app apart from others of the server's user.
func (p *Profile) OwnTasks() bool { return p.Level >= LevelNamespaces || p.UID != 0 }

// Usage is what a process tree uses at one moment.
type Usage struct {
	Memory    int64
	Processes int           // with those that have ended and were not waited for
	Threads   int           // of all processes
	CPUTime   time.Duration // of the processes that live
}

// WatchInterval is how often the use of a tree is measured.
const WatchInterval = 200 * time.Millisecond

// threadsPerProcess is more than the average of a tree. A thread takes one of the machine's process ids, too.
const threadsPerProcess = 16

// Exceeded is the limit that u is over, in a sentence; "" for none.
func (l Limits) Exceeded(u Usage) string {
	switch {
	case l.Memory > 0 && u.Memory > l.Memory:
		return fmt.Sprintf("used %d MiB of memory and may use %d MiB", u.Memory>>20, l.Memory>>20)
	case l.Processes > 0 && u.Processes > l.Processes:
		return fmt.Sprintf("had %d processes and may have %d", u.Processes, l.Processes)
	case l.Processes > 0 && u.Threads > l.Threads():
		return fmt.Sprintf("had %d threads and may have %d", u.Threads, l.Threads())
	}
	return ""
}

// Threads is how many threads a tree may have.
func (l Limits) Threads() int { return l.Processes * threadsPerProcess }

// Pause is how long a tree is to be stopped that used this much processor time in the last interval.
func (l Limits) Pause(used, interval time.Duration) time.Duration {
	allowed := time.Duration(l.CPU * float64(interval))
	if l.CPU <= 0 || used <= allowed {
		return 0
	}
	return time.Duration(float64(used-allowed) / l.CPU)
}

// Add is the sum of two.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		Memory: u.Memory + other.Memory, Processes: u.Processes + other.Processes, Threads: u.Threads + other.Threads, CPUTime: u.CPUTime + other.CPUTime,
	}
}
