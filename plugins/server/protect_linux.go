package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameProcess sets the name that process lists show, up to 15 bytes. Without it they show a number, because the server
// executes a plugin through a file descriptor. It must be called before protectMemory.
func nameProcess(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// protectMemory keeps other processes of the same user from reading the memory and the environment of
// the plugin, which contain its settings.
func protectMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
