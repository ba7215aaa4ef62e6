package sandbox

import "golang.org/x/sys/unix"

// forbiddenHere and metadataHere are the system calls that only this processor has.
func forbiddenHere() []uintptr { return []uintptr{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_LOOKUP_DCOOKIE} }

func metadataHere() []uintptr { return nil }
