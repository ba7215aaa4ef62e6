package sandbox

import "golang.org/x/sys/unix"

// forbiddenHere and metadataHere return the system calls that only this architecture has.
func forbiddenHere() []uintptr { return []uintptr{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_LOOKUP_DCOOKIE} }

func metadataHere() []uintptr { return nil }

// modeArguments and openArguments are as on amd64, which has some older calls in addition.
func modeArguments() map[uintptr]uint32 {
	return map[uintptr]uint32{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_MKNODAT: 2}
}

func openArguments() map[uintptr]uint32 { return map[uintptr]uint32{unix.SYS_OPENAT: 2} }
