package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/ropewalk/ropewalk/core/cgroup"
	"github.com/ropewalk/ropewalk/core/sandbox"
)

// confinedStart is the first line on the socket of a shim that confines its program. The shim itself has no
// environment: what a bundle sets in its own, such as LD_PRELOAD, would change the shim, which is not
// confined.
type confinedStart struct {
	Profile sandbox.Profile `json:"profile"`
	Watch   sandbox.Limits  `json:"watch"` // what is to be measured, because the kernel does not hold it
	Env     [][]byte        `json:"env"`   // any bytes: JSON would change strings that are not UTF-8
}

// prepareProfile adds to attr what the sandbox needs, and returns the first line for the shim.
func prepareProfile(attr *syscall.SysProcAttr, c Command, group *cgroup.Group) ([]byte, error) {
	p := *c.Sandbox
	p.Attributes(attr)
	start := confinedStart{Profile: p}
	_, start.Watch = group.Bounds().Split(p.Limits)
	for _, variable := range c.Env {
		start.Env = append(start.Env, []byte(variable))
	}
	line, err := json.Marshal(start)
	return append(line, '\n'), err
}

// receiveProfile reads the profile and prepares the shim itself.
func (s *shim) receiveProfile() (*sandbox.Profile, error) {
	line, err := s.requests.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the sandbox profile did not arrive: %w", err)
	}
	var start confinedStart
	if err := json.Unmarshal(line, &start); err != nil {
		return nil, fmt.Errorf("the sandbox profile cannot be read: %w", err)
	}
	s.env = nil
	for _, variable := range start.Env {
		s.env = append(s.env, string(variable))
	}
	p := start.Profile
	s.limits, s.ownIPC = start.Watch, p.Level >= sandbox.LevelNamespaces
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
	kills := make(chan chan struct{})
	s.sandboxKills = kills
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
		spawned <- s.spawn(false, path, argv)
		for done := range kills {
			p.KillAll()
			close(done)
		}
	}()
	err := <-spawned
	if err == nil && s.limits.Processes > 0 {
		err = s.limitThreads(p) // the restricted thread may not: it has the filter of the program
	}
	return err
}

// killSandbox sends SIGKILL to all that runs in the sandbox, at once.
func (s *shim) killSandbox() {
	if s.sandboxKills == nil {
		return
	}
	done := make(chan struct{})
	s.sandboxKills <- done
	<-done
}

// limitThreads bounds the program that was just started. One that has ended already needs no bound.
func (s *shim) limitThreads(p *sandbox.Profile) error {
	err := p.LimitThreads(s.child)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("the number of threads cannot be limited: %w", err)
}
