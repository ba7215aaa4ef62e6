package sandbox

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// gateForks makes the kernel ask the broker whenever the app starts a process, at LevelLandlock. The broker always
// agrees, but when the shim is gone there is nobody to ask, and the call fails. At LevelNamespaces, the kernel ends the
// app with its shim. Here, processes that fork and exit faster than they are found would outlive it forever.
//
// The shim itself starts the program from a thread with this filter, and cannot answer at that moment. The upper half of
// the flags, which the kernel ignores, shows that it is the shim.
func (b *Broker) gateForks(f *program) {
	if b.pass == 0 {
		return
	}
	f.on(unix.SYS_CLONE, slices.Concat(when(0, unix.CLONE_THREAD, permit()), []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArguments + 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: b.pass, SkipTrue: 1}, permit(), ask(),
	})...)
	if runtime.GOARCH == "amd64" {
		f.on(sysFork, ask())
		f.on(sysVfork, ask())
	}
}

// isFork reports whether a call starts a process.
func (b *Broker) isFork(n notification) bool {
	return b.pass != 0 && (n.number == unix.SYS_CLONE || runtime.GOARCH == "amd64" && (n.number == sysFork || n.number == sysVfork))
}

// newPass returns a number that an app cannot know.
func newPass() (pass uint32, err error) {
	for pass == 0 && err == nil {
		_, err = unix.Getrandom((*[unsafe.Sizeof(pass)]byte)(unsafe.Pointer(&pass))[:], 0)
	}
	return pass, err
}

// CloneFlags returns the flags with which the shim starts the program. b may be nil.
func (b *Broker) CloneFlags() uintptr {
	if b == nil {
		return 0
	}
	return uintptr(uint64(b.pass) << 32)
}
