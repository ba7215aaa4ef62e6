package sandbox

import "golang.org/x/sys/unix"

// forbiddenHere and metadataHere are the system calls that only this processor has.
func forbiddenHere() []uintptr {
	return []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_LOOKUP_DCOOKIE}
}

func metadataHere() []uintptr {
	return []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
}
