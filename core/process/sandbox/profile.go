package sandbox

import (
	"fmt"
	"slices"
	"time"
)

// Profile says what the process tree of one app may use. Paths are absolute.
type Profile struct {
	Level Level `json:"level"`

	Read  []string `json:"read"`           // files and directories to read and execute, including everything below them
	Write []string `json:"write"`          // directories to read, write and execute
	Hide  []string `json:"hide,omitempty"` // paths that remain closed even if Read covers them

	// Exact lists paths of Read and Write that must not be symbolic links in any part: people granted exactly
	// these paths. If one has become a link, it is not opened.
	Exact []string `json:"exact,omitempty"`

	// Mapped lists paths of Read and Write in which the app sees the owner's files as its own, at
	// LevelNamespaces.
	Mapped []Mapped `json:"mapped,omitempty"`

	// Layers lists directories of Read that the app may also change, at LevelNamespaces and if the file systems
	// allow it. What it writes is stored separately, and the directory itself does not change.
	Layers []Layer `json:"layers,omitempty"`

	// UID is the user and group id that the app runs as, which requires a server that runs as root; 0 means the
	// server's own. Group is an additional group at LevelLandlock, which may traverse the directories above the app's.
	UID   int `json:"uid,omitempty"`
	Group int `json:"group,omitempty"`

	// Metadata also allows changing the mode, owner and times of files by path at LevelLandlock, where that is
	// not limited to Write. Programs that install other programs need it.
	Metadata bool `json:"metadata,omitempty"`

	// Trace reports which files the app opens. It makes every open slower.
	Trace bool `json:"trace,omitempty"`

	Network Network `json:"network"`
	Taken   []int   `json:"taken,omitempty"` // ports of the server: apps in its network cannot listen on them
	Limits  Limits  `json:"limits"`

	Owner Owner `json:"owner"` // set by Attributes

	nameServers []string // this machine's, read before the file tree is replaced
}

// Covers reports whether the profile opens a path, for reading or for writing.
func (p *Profile) Covers(path string, write bool) bool {
	open := slices.Clone(p.Write)
	for _, layer := range p.Layers {
		open = append(open, layer.Dir)
	}
	if !write {
		open = append(open, p.Read...)
	}
	nearest := nearestDir(path, open)
	return nearest > 0 && nearest >= nearestDir(path, p.Hide)
}

// Mapped is a path that is shown through its own mount.
type Mapped struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
	FD    int    `json:"fd"` // the mount's descriptor in the shim
}

// Layer is a directory with a private layer of changes.
type Layer struct {
	Dir   string `json:"dir"`
	Upper string `json:"upper"` // the changes; the directory exists
	Work  string `json:"work"`  // for the kernel; an existing directory on the same file system
}

// Owner is the user that the server runs as.
type Owner struct{ UID, GID int }

// Limits limit what the process tree of an app may use. Zero means no limit.
type Limits struct {
	Memory    int64   `json:"memory,omitempty"`    // private memory of the whole tree, in bytes
	Processes int     `json:"processes,omitempty"` // processes of the tree
	OpenFiles int     `json:"openFiles,omitempty"` // descriptors of one process
	FileSize  int64   `json:"fileSize,omitempty"`  // size of one file, in bytes
	CPU       float64 `json:"cpu,omitempty"`       // number of processors; the tree is paused when it uses more

	// Tasks is how many threads and processes may exist before starting another one fails: in the tree, or for
	// the server's user if the kernel counts the tree among that user's tasks (OwnTasks).
	Tasks int `json:"tasks,omitempty"`
}

// OwnTasks reports whether the kernel counts the app's threads and processes separately from those of the
// server's user.
func (p *Profile) OwnTasks() bool { return p.Level >= LevelNamespaces || p.UID != 0 }

// Usage holds the resources that a process tree uses at one moment.
type Usage struct {
	Memory    int64
	Processes int           // including those that have ended but were not waited for
	Threads   int           // the total of all processes
	CPUTime   time.Duration // the total of the live processes
}

// WatchInterval is how often the usage of a tree is measured.
const WatchInterval = 200 * time.Millisecond

// threadsPerProcess is how many threads a tree may have for each process of its limit. Few trees have that many.
// Threads are limited because each one uses one of the machine's process ids.
const threadsPerProcess = 16

// Exceeded returns a sentence about the limit that u exceeds, or "".
func (l Limits) Exceeded(u Usage) string {
	switch {
	case l.Memory > 0 && u.Memory > l.Memory:
		return fmt.Sprintf("used %d MiB of memory; the limit is %d MiB", u.Memory>>20, l.Memory>>20)
	case l.Processes > 0 && u.Processes > l.Processes:
		return fmt.Sprintf("had %d processes; the limit is %d", u.Processes, l.Processes)
	case l.Processes > 0 && u.Threads > l.Threads():
		return fmt.Sprintf("had %d threads; the limit is %d", u.Threads, l.Threads())
	}
	return ""
}

// Threads returns how many threads a tree may have.
func (l Limits) Threads() int { return l.Processes * threadsPerProcess }

// Pause returns how long to stop a tree that used this much processor time in the last interval.
func (l Limits) Pause(used, interval time.Duration) time.Duration {
	allowed := time.Duration(l.CPU * float64(interval))
	if l.CPU <= 0 || used <= allowed {
		return 0
	}
	return time.Duration(float64(used-allowed) / l.CPU)
}

// Add returns the sum of u and other.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		Memory: u.Memory + other.Memory, Processes: u.Processes + other.Processes, Threads: u.Threads + other.Threads, CPUTime: u.CPUTime + other.CPUTime,
	}
}
