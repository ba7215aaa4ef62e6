package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// spawn executes the program in its own process group, with the shim's standard streams.
func (s *shim) spawn(byFD bool, path string, argv []string) error {
	files := []uintptr{0, 1, 2}
	target, err := s.find(path)
	if byFD {
		// Not closed on exec: a script's interpreter opens it again.
		target, files, err = descriptorPath(len(files), path), append(files, programFD), nil
	}
	if err != nil {
		return explain(path, err)
	}
	s.child, err = syscall.ForkExec(target, argv, &syscall.ProcAttr{Env: s.env, Files: files, Sys: s.childAttributes()})
	if byFD {
		_ = syscall.Close(programFD)
	}
	if errors.Is(err, syscall.EAGAIN) && s.profile != nil && s.profile.Limits.Tasks > 0 {
		return fmt.Errorf("%q cannot be executed: the programs of its user have all %d threads and processes that they may have together: stop an app, or raise the limit of the server's user (ulimit -u), of its cgroup (pids.max) or of the machine (kernel.pid_max)", path, s.profile.Limits.Tasks)
	}
	return explain(path, err)
}

// find returns the file of a program. A bare name is looked up on the PATH of its environment.
func (s *shim) find(path string) (string, error) {
	for _, variable := range s.env {
		if list, ok := strings.CutPrefix(variable, "PATH="); ok {
			if err := os.Setenv("PATH", list); err != nil {
				return "", err
			}
		}
	}
	return exec.LookPath(path)
}

// explain turns an exec error into a sentence that says what to do.
func explain(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("command %q not found: install it, or put its directory on the server's PATH", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q does not exist, or the interpreter that its first line names does not", path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%q may not be executed: check that it is a program and has execute permission", path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%q is not a program that this machine can execute", path)
	}
	return fmt.Errorf("%q cannot be executed: %w", path, err)
}
