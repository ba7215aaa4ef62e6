//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
)

var errNoSandbox = errors.New("only Linux has a sandbox")

// Broker makes the connections of an app; there is none here.
type Broker struct{}

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

// KillAll does nothing.
func (p *Profile) KillAll() {}

// LimitThreads does nothing.
func (p *Profile) LimitThreads(int) error { return nil }
