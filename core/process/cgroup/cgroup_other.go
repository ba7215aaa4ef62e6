//go:build !linux

package cgroup

import (
	"errors"
	"os"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

var errNoGroups = errors.New("only Linux has cgroups")

// Tree is the server's own group. It does not exist on this system.
type Tree struct{}

// Group is the group of one process tree. It does not exist on this system.
type Group struct{}

// Take always fails.
func Take() (*Tree, error) { return nil, errNoGroups }

// Bounds returns the zero Bounds.
func (*Tree) Bounds() Bounds { return Bounds{} }

// Close does nothing.
func (*Tree) Close() error { return nil }

// New always fails.
func (*Tree) New(string, sandbox.Limits) (*Group, error) { return nil, errNoGroups }

// Bounds returns the zero Bounds.
func (*Group) Bounds() Bounds { return Bounds{} }

// Attributes does nothing.
func (*Group) Attributes(*syscall.SysProcAttr) {}

// Started does nothing.
func (*Group) Started() {}

// KillFile always fails.
func (*Group) KillFile() (*os.File, error) { return nil, errNoGroups }

// Kill always fails.
func (*Group) Kill() error { return errNoGroups }

// Exceeded always returns "".
func (*Group) Exceeded() string { return "" }

// Ended always returns "".
func (*Group) Ended() string { return "" }

// Remove does nothing.
func (*Group) Remove() error { return nil }

// MemoryIsShort always returns false.
func MemoryIsShort() bool { return false }
