//go:build !linux

package cgroup

import (
	"errors"
	"math"
	"os"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

var errNoGroups = errors.New("only Linux has cgroups")

// Tree is the server's own group; there is none here.
type Tree struct{}

// Group is the group of one process tree; there is none here.
type Group struct{}

// Take fails.
func Take() (*Tree, error) { return nil, errNoGroups }

// Bounds is none.
func (*Tree) Bounds() Bounds { return Bounds{} }

// Close does nothing.
func (*Tree) Close() error { return nil }

// New fails.
func (*Tree) New(string, sandbox.Limits) (*Group, error) { return nil, errNoGroups }

// Bounds is none.
func (*Group) Bounds() Bounds { return Bounds{} }

// Attributes changes nothing.
func (*Group) Attributes(*syscall.SysProcAttr) {}

// Started does nothing.
func (*Group) Started() {}

// KillFile fails.
func (*Group) KillFile() (*os.File, error) { return nil, errNoGroups }

// Kill fails.
func (*Group) Kill() error { return errNoGroups }

// Exceeded is none.
func (*Group) Exceeded() string { return "" }

// Ended is none.
func (*Group) Ended() string { return "" }

// Remove does nothing.
func (*Group) Remove() error { return nil }

// MemoryIsShort is never true.
func MemoryIsShort() bool { return false }

// HostTasks and OwnTasks know no limit here.
func HostTasks() int64 { return math.MaxInt64 }

// OwnTasks is as HostTasks.
func OwnTasks() int64 { return math.MaxInt64 }
