package sandbox

import "golang.org/x/sys/unix"

// forbiddenHere and metadataHere return the system calls that only this architecture has.
func forbiddenHere() []uintptr {
	return []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_LOOKUP_DCOOKIE}
}

func metadataHere() []uintptr {
	return []uintptr{unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
}

// modeArguments returns the system calls that set a file's mode, with the position of the mode argument.
// openArguments returns calls with the position of their flags; the mode follows the flags.
func modeArguments() map[uintptr]uint32 {
	return map[uintptr]uint32{
		unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_MKNODAT: 2,
		unix.SYS_CHMOD: 1, unix.SYS_MKNOD: 1, unix.SYS_CREAT: 1,
	}
}

func openArguments() map[uintptr]uint32 {
	return map[uintptr]uint32{unix.SYS_OPENAT: 2, unix.SYS_OPEN: 1}
}
