//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

var errNoSandbox = errors.New("only Linux has a sandbox")

// Broker makes the connections of an app. It does not exist on this system.
type Broker struct{}

// OnDenied does nothing.
func (*Broker) OnDenied(func(kind, target string, count int)) {}

// Serve does nothing.
func (*Broker) Serve() {}

// CloneFlags always returns 0.
func (*Broker) CloneFlags() uintptr { return 0 }

// Attributes does nothing.
func (p *Profile) Attributes(*syscall.SysProcAttr) {}

// Enter always fails. Supported reports that beforehand.
func (p *Profile) Enter() error { return errNoSandbox }

// Confine always fails. Supported reports that beforehand.
func (p *Profile) Confine() (*Broker, error) { return nil, errNoSandbox }

// Supported returns the highest level that this kernel can provide, and the reason if there is a higher one.
func Supported() (Level, string) { return LevelNone, errNoSandbox.Error() }

// InChroot always returns false: this system does not expose it.
func InChroot() bool { return false }

// OwnerOf always fails.
func OwnerOf(string) (Owner, error) { return Owner{}, errNoSandbox }

// OpenMapped always fails. Only Linux has mapped mounts.
func OpenMapped(string, *os.File, bool) (*os.File, error) { return nil, errNoSandbox }

// Accessible always returns true: an app has the permissions of the server's user.
func Accessible(string, int, bool, Level) bool { return true }

// KillAll does nothing.
func (p *Profile) KillAll() {}

// KillsAnywhere always returns false.
func (p *Profile) KillsAnywhere() bool { return false }

// StartLimited only calls fork.
func (p *Profile) StartLimited(fork func() error) error { return fork() }

// ProcessUsage always returns false.
func ProcessUsage(int) (Usage, bool) { return Usage{}, false }

// Meter measures nothing.
type Meter struct{}

// Usage always returns false.
func (*Meter) Usage(int) (u Usage, zombieOf int, ok bool) { return Usage{}, 0, false }

// Descendants always returns false.
func (*Meter) Descendants(int, []int) ([]int, bool) { return nil, false }

// SharedFairly always returns false.
func SharedFairly(int) (int64, bool) { return 0, false }

// IPCMemory always returns 0.
func IPCMemory(int) int64 { return 0 }
