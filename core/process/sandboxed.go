package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// confinedStart is the first line on the socket of a shim that confines its program. The shim itself has no
// environment: variables that a bundle sets, such as LD_PRELOAD, would affect the shim, which is not confined.
type confinedStart struct {
	Profile sandbox.Profile `json:"profile"`
	Watch   sandbox.Limits  `json:"watch"` // limits to measure, because the kernel does not enforce them
	Env     [][]byte        `json:"env"`   // arbitrary bytes: JSON would change strings that are not UTF-8
}

// prepareProfile adds the attributes that the sandbox needs to attr. It returns the first line for the shim, and the
// mounts that it inherits.
func prepareProfile(attr *syscall.SysProcAttr, c Command, group *cgroup.Group, share *share) (line []byte, mounts []*os.File, err error) {
	p := *c.Sandbox
	p.Attributes(attr)
	p.Mapped = slices.Clone(p.Mapped)
	for i, m := range p.Mapped {
		mount, err := OpenMapped(m.Path, p.UID, m.Write)
		if err != nil {
			return nil, mounts, err
		}
		mounts = append(mounts, mount)
		p.Mapped[i].FD = mountFD + i
	}
	p.Limits.Tasks = share.tasks
	start := confinedStart{Profile: p}
	_, start.Watch = group.Bounds().Split(p.Limits)
	for _, variable := range c.Env {
		start.Env = append(start.Env, []byte(variable))
	}
	line, err = json.Marshal(start)
	return append(line, '\n'), mounts, err
}

// receiveProfile reads the profile and prepares the shim itself.
func (s *shim) receiveProfile() (*sandbox.Profile, error) {
	line, err := s.requests.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the sandbox profile did not arrive: %w", err)
	}
	var start confinedStart
	fields := json.NewDecoder(bytes.NewReader(line))
	fields.DisallowUnknownFields() // from a server that embeds an older shim
	if err := fields.Decode(&start); err != nil {
		return nil, fmt.Errorf("cannot read the sandbox profile: %w", err)
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
		return nil, fmt.Errorf("cannot create the sandbox: %w", err)
	}
	if err := os.Chdir(dir); err != nil {
		return nil, fmt.Errorf("the working directory is not part of the sandbox: %w", err)
	}
	return &p, nil
}

// spawnConfined executes the program from a thread that is restricted permanently. The thread stays alive where the
// program ends when the thread that started it does.
func (s *shim) spawnConfined(p *sandbox.Profile, path string, argv []string) error {
	confined, begin, spawned := make(chan error), make(chan struct{}), make(chan error)
	kills := make(chan chan struct{})
	s.profile, s.sandboxKills, s.isInit = p, kills, p.KillsAnywhere()
	go func() {
		runtime.LockOSThread()
		broker, err := p.Confine()
		if err != nil {
			confined <- fmt.Errorf("cannot create the sandbox: %w", err)
			return
		}
		if broker != nil {
			broker.OnDenied(func(kind, target string, count int) { s.report("denied %d %s %q\n", count, kind, target) })
			go broker.Serve()
		}
		s.cloneFlags = broker.CloneFlags()
		confined <- nil
		<-begin
		spawned <- s.spawn(false, path, argv)
		if s.isInit {
			return
		}
		for done := range kills {
			p.KillAll()
			close(done)
		}
	}()
	if err := <-confined; err != nil {
		return err
	}
	return p.StartLimited(func() error {
		close(begin)
		return <-spawned
	})
}

// killSandbox sends SIGKILL to everything in the sandbox at once.
func (s *shim) killSandbox() {
	if s.sandboxKills == nil {
		return
	}
	if s.isInit {
		s.profile.KillAll()
		return
	}
	done := make(chan struct{})
	s.sandboxKills <- done
	<-done
}
