package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func stopCommand() *cobra.Command {
	var home string
	timeout := time.Minute
	cmd := &cobra.Command{
		Use: "stop", Short: "Stop the running server", Args: cobra.NoArgs,
		Long: "Stop the running server and wait until it has exited. Requests in progress may finish first, as with SIGTERM.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			status, err := control.Dial(dir).Status(cmd.Context())
			if err != nil {
				return notRunning(err, dir)
			}
			return stop(cmd, status, timeout)
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait until the server has exited")
	return cmd
}

// stop asks a server to shut down, and returns when its process has exited.
func stop(cmd *cobra.Command, server control.Status, timeout time.Duration) error {
	p, err := os.FindProcess(server.PID)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(timeout); err == nil && !isZombie(server.PID); err = p.Signal(syscall.Signal(0)) {
		select {
		case <-tick.C:
		case <-late:
			return fmt.Errorf("the server (process %d) has not exited after %s; its log shows what it is waiting for", server.PID, timeout)
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the server (process %d): %w", server.PID, err)
	}
	cmd.PrintErrf("Stopped the server at %s.\n", server.URL)
	return nil
}

// isZombie reports whether a process has exited and its parent has not waited for it. In a container whose first process is
// not an init, nobody does.
func isZombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // only Linux has one
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}
