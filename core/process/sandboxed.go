package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/ropewalk/ropewalk/core/sandbox"
)

// sendProfile prepares a shim that confines its program. The profile is the first line on the socket.
func sendProfile(s *shimSocket, attr *syscall.SysProcAttr, p sandbox.Profile) error {
	p.Attributes(attr)
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = s.server.Write(append(line, '\n'))
	return err
}

// receiveProfile reads the profile and prepares the shim itself.
func receiveProfile(requests *bufio.Reader) (*sandbox.Profile, error) {
	line, err := requests.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the sandbox profile did not arrive: %w", err)
	}
	var p sandbox.Profile
	if err := json.Unmarshal(line, &p); err != nil {
		return nil, fmt.Errorf("the sandbox profile cannot be read: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := p.Enter(); err != nil {
		return nil, fmt.Errorf("the sandbox cannot be made: %w", err)
	}
	if err := os.Chdir(dir); err != nil {
		return nil, fmt.Errorf("the working directory is not part of the sandbox: %w", err)
	}
	return &p, nil
}

// spawnConfined executes the program from a thread that is restricted for good. The thread stays: the
// program ends when the thread that started it does.
func (s *shim) spawnConfined(p *sandbox.Profile, path string, argv []string) error {
	spawned := make(chan error)
	go func() {
		runtime.LockOSThread()
		broker, err := p.Confine()
		if err != nil {
			spawned <- fmt.Errorf("the sandbox cannot be made: %w", err)
			return
		}
		if broker != nil {
			go broker.Serve()
		}
		err = s.spawn(false, path, argv)
		if err == nil {
			err = s.limitThreads(p)
		}
		spawned <- err
		select {}
	}()
	return <-spawned
}

// limitThreads bounds the program that was just started. One that has ended already needs no bound.
func (s *shim) limitThreads(p *sandbox.Profile) error {
	err := p.LimitThreads(s.child)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("the number of threads cannot be limited: %w", err)
}
