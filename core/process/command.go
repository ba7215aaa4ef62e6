package process

import (
	"fmt"
	"io"
	"time"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// ShimArg is the first argument that turns the binary into a shim. A main function (and the
// TestMain of every test binary that starts processes) begins with
//
//	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
//		os.Exit(process.ShimMain(os.Args[2:]))
//	}
const ShimArg = "__shim"

// startTimeout bounds the time from starting a shim to its report that the program runs.
const startTimeout = 20 * time.Second

// Command is a program to run.
type Command struct {
	Path   string    // a file, or a bare name that is looked up on the PATH of Env
	Name   string    // what the program and the process list see as its name, argv[0]; "" means Path
	Args   []string  // the arguments after the program's own name
	Dir    string    // working directory; "" is the server's
	Env    []string  // the whole environment, KEY=value; nothing of the server's is added
	Stderr io.Writer // receives the standard error of the tree; nil discards it

	// Sandbox, when set, confines the tree.
	Sandbox *sandbox.Profile

	// Denied, when set, is called with services of this machine (host:port) to which connections were refused. It must not wait.
	Denied func(target string, count int)

	// Cgroup bounds the tree by the kernel, at any level of the sandbox.
	Cgroup Cgroup

	// Verified, when set, is what is executed; Path is then only the name the program sees without a Name.
	Verified *Verified
}

// Cgroup is how the kernel bounds a tree. It is then ended whole, whatever its processes do to hide. The
// limits that the server's group cannot hold are those of the sandbox, which measures.
type Cgroup struct {
	Tree   *cgroup.Tree // nil for none
	Name   string       // for operators
	Limits sandbox.Limits
}

// StartError says why a program could not be executed. The message names the program and what to
// do about it, and is safe to show.
type StartError struct {
	Path   string
	Reason string
	cause  error // what the kernel said, if it did
}

func (e *StartError) Error() string { return e.Reason }

// Unwrap returns the error of the kernel.
func (e *StartError) Unwrap() error { return e.cause }

// ExitError is how a program ended, unless it ended with status 0.
type ExitError struct {
	Code   int    // the exit status; 128+n for a program ended by signal n
	Signal string // the signal's name, "" for a program that exited by itself
	Limit  string // the limit that the tree was ended for, such as "used 600 MiB of memory and may use 512 MiB"; "" for none
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
