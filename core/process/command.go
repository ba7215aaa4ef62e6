package process

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// ShimArg is the first argument that makes any executable with this package run as a shim.
const ShimArg = "__shim"

// startTimeout bounds the time between starting a shim and its report that the program is running.
const startTimeout = 20 * time.Second

// Command is a program to run.
type Command struct {
	Path   string    // a file, or a bare name that is looked up on the PATH of Env
	Name   string    // argv[0], the name that the program and the process list see; "" means Path
	Args   []string  // the arguments after argv[0]
	Dir    string    // working directory; "" means the server's
	Env    []string  // the complete environment, KEY=value; the server's own is not inherited
	Stderr io.Writer // receives the tree's standard error; nil discards it

	// Sandbox confines the tree, if set.
	Sandbox *sandbox.Profile

	// Denied, if set, is called with services on this machine (net, host:port) to which connections were refused. If
	// Sandbox.Trace is set, it is also called with the files that the tree opens (read or write, a path). It must not
	// block.
	Denied func(kind, target string, count int)

	// Cgroup makes the kernel limit the tree, at any level of the sandbox.
	Cgroup Cgroup

	// Verified, if set, is the file to execute. Path is then only the name that the program sees if Name is
	// empty.
	Verified *Verified
}

// confined reports whether the program runs in a sandbox.
func (c Command) confined() bool { return c.Sandbox != nil && c.Sandbox.Level != sandbox.LevelNone }

// Cgroup describes how the kernel limits a tree. The kernel can then kill the whole tree, even if its processes try to
// hide. Limits that the server's group cannot enforce are left to the sandbox, which measures usage itself.
type Cgroup struct {
	Tree   *cgroup.Tree // may be nil
	Name   string       // shown to operators
	Limits sandbox.Limits
}

// errBusy is wrapped by errors about a lack of threads.
var errBusy = errors.New("stop an app, lower sandbox.processes for apps that need few, or raise that limit")

// StartError explains why a program could not be executed. The message names the program and says what to do.
// It is safe to show.
type StartError struct {
	Path   string
	Reason string
	Busy   bool  // the running programs have all threads; it can start once some of them have ended
	cause  error // the kernel's error, if any
}

func (e *StartError) Error() string { return e.Reason }

// Unwrap returns the kernel's error, which may be nil.
func (e *StartError) Unwrap() error { return e.cause }

// ExitError describes how a program exited, unless it exited with status 0.
type ExitError struct {
	Code   int    // the exit status; 128+n for a program ended by signal n
	Signal string // the signal's name; "" for a program that exited
	Limit  string // why the tree was ended for exceeding a limit, such as "used 600 MiB of memory; the limit is 512 MiB"; "" otherwise
}

func (e *ExitError) Error() string {
	if e.Limit != "" {
		return "ended because it " + e.Limit
	}
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}
