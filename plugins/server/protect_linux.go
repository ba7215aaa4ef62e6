package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameProcess has the process list show a name, of which it keeps 15 bytes. It shows a number otherwise: the
// server executes a plugin by the descriptor of its file. It must come before protectMemory.
func nameProcess(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// protectMemory keeps other processes of the same user from reading the memory and the environment of
// the plugin, which hold its settings.
func protectMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
