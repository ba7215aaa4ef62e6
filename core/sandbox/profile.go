package sandbox

import "time"

// Profile is what the process tree of one app may use. Paths are absolute.
type Profile struct {
	Level Level `json:"level"`

	Read  []string `json:"read"`           // files and directories to read and execute, with all below them
	Write []string `json:"write"`          // directories to read, write and execute
	Hide  []string `json:"hide,omitempty"` // paths that stay closed although Read covers them

	// Layers are directories of Read that the app may also change, at LevelNamespaces and where the file
	// systems allow it: what it writes is kept apart, and the directory itself stays as it is.
	Layers []Layer `json:"layers,omitempty"`

	// UID is the user and group id that the app runs as; 0 is the server's own. It takes a server that
	// runs as root, and LevelNamespaces.
	UID int `json:"uid,omitempty"`

	// Metadata lets it change the mode, owner and times of files by their path at LevelLandlock, too, where that
	// is not bound to Write. Programs that install others need it.
	Metadata bool `json:"metadata,omitempty"`

	Network Network `json:"network"`
	Limits  Limits  `json:"limits"`

	Owner Owner `json:"owner"` // set by Attributes

	nameServers []string // of this machine, read before the file tree is replaced
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
}

// Usage is what a process tree uses at one moment.
type Usage struct {
	Memory    int64
	Processes int           // with those that have ended and were not waited for
	Threads   int           // of all processes
	CPUTime   time.Duration // of the processes that live
}
