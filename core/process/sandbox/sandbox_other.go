//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

var errNoSandbox = errors.New("only Linux has a sandbox")

// Broker makes the connections of an app; there is none here.
type Broker struct{}

// OnDenied has nothing to report.
func (*Broker) OnDenied(func(string, int)) {}

// Serve has nothing to do.
func (*Broker) Serve() {}

// Attributes changes nothing.
func (p *Profile) Attributes(*syscall.SysProcAttr) {}

// Enter fails: Supported says so before.
func (p *Profile) Enter() error { return errNoSandbox }

// Confine fails: Supported says so before.
func (p *Profile) Confine() (*Broker, error) { return nil, errNoSandbox }

// Supported is the highest level that this kernel can have, with the reason when it is not the highest.
func Supported() (Level, string) { return LevelNone, errNoSandbox.Error() }

// InChroot reports whether this process is in a chroot, which is not found out here.
func InChroot() bool { return false }

// OwnerOf is not known.
func OwnerOf(string) (Owner, error) { return Owner{}, errNoSandbox }

// OpenMapped always fails. Only Linux has mapped mounts.
func OpenMapped(string, *os.File, bool) (*os.File, error) { return nil, errNoSandbox }

// Accessible is true: an app has the rights of the server's user.
func Accessible(string, int, bool, Level) bool { return true }

// KillAll does nothing.
func (p *Profile) KillAll() {}

// LimitProgram does nothing.
func (p *Profile) LimitProgram(int) error { return nil }

// ProcessUsage measures nothing.
func ProcessUsage(int) (Usage, bool) { return Usage{}, false }

// SharedFairly measures nothing.
func SharedFairly(int) (int64, bool) { return 0, false }

// DetachedMemory measures nothing.
func DetachedMemory() int64 { return 0 }
