//go:build unix

package process

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// ShimCommand is a command that runs path under a shim, for a library that insists on starting its
// own *exec.Cmd (go-plugin). The library may set Env, Dir and the standard streams before it starts
// the command. Closing the life line ends the whole tree within milliseconds, and so does the
// server's death; close it too when the command was never started.
func ShimCommand(path string, args, env []string) (*exec.Cmd, io.Closer, error) {
	return ShimCommandOf(Command{Path: path, Args: args, Env: env})
}

// ShimCommandOf is ShimCommand for a whole Command, Verified included.
func ShimCommandOf(c Command) (*exec.Cmd, io.Closer, error) {
	cmd, line, err := shimCommand(c)
	if err != nil {
		return nil, nil, err
	}
	cmd.Dir, cmd.Stderr = c.Dir, c.Stderr
	return cmd, pluginLine{line}, nil
}

// pluginLine also collects what a shim that was killed before its life line was cut left behind:
// go-plugin ends a plugin that does not listen with SIGKILL.
type pluginLine struct{ *lifeLine }

func (l pluginLine) Close() error {
	err := l.lifeLine.Close()
	sweepOrphans()
	return err
}

// Self is the path of the running binary, good for Command.Path. It stays right when the file is
// replaced or removed while the server runs.
func Self() string { return selfPath() }

func shimCommand(c Command) (*exec.Cmd, *lifeLine, error) {
	line, err := newLifeLine(c.Verified)
	if err != nil {
		return nil, nil, err
	}
	how := byPath
	if c.Verified != nil {
		how = byDescriptor
	}
	//nolint:noctx // the life line ends it, with the whole tree; a context would end the shim alone
	cmd := exec.Command(selfPath(), append([]string{ShimArg, how, c.Path}, c.Args...)...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(make([]string, 0, len(c.Env)+8), c.Env...) // never nil: nil would inherit
	cmd.ExtraFiles = line.extraFiles()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the server alone
	return cmd, line, nil
}
