package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/sandbox"
)

func (e *examination) checkHome() {
	home := e.config.Home
	info, err := os.Stat(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.add("home", ok, home+" will be created at the first start", "")
	case err != nil:
		e.add("home", failed, err.Error(), "make the directory readable for the user of the server")
	case !info.IsDir():
		e.add("home", failed, home+" is not a directory", "choose another home with --home or ROPEWALK_HOME")
	case info.Mode().Perm()&0o022 != 0:
		e.add("home", failed, fmt.Sprintf("%s can be written by others (mode %o)", home, info.Mode().Perm()), "chmod 700 "+home)
	default:
		probe, err := os.CreateTemp(home, ".doctor-*")
		if err != nil {
			e.add("home", failed, err.Error(), "make "+home+" writable for the user of the server")
			return
		}
		_ = errors.Join(probe.Close(), os.Remove(probe.Name()))
		e.add("home", ok, home, "")
	}
}

// The free space below which there is a finding.
const (
	littleSpace   = 1 << 30
	tooSmallSpace = 100 << 20
)

func (e *examination) checkDisk() {
	dir := e.config.Home
	if _, err := os.Stat(dir); err != nil {
		dir = "/"
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		e.add("disk", warning, err.Error(), "check the file system of "+dir)
		return
	}
	free := s.Bavail * uint64(s.Bsize)
	result := ok
	switch {
	case free < tooSmallSpace:
		result = failed
	case free < littleSpace:
		result = warning
	}
	e.add("disk", result, fmt.Sprintf("%.1f GiB free at %s", float64(free)/(1<<30), dir), "free some space: installs and the database need it")
}

// runtimes are the programs that bundles need.
func runtimes() []struct{ name, args, need string } {
	return []struct{ name, args, need string }{
		{"node", "--version", "bundles written in JavaScript, and npm packages"},
		{"npm", "--version", "npm packages"},
		{"python3", "--version", "bundles written in Python"},
		{"uv", "--version", "PyPI packages and bundles of type uv"},
	}
}

func (e *examination) checkRuntimes(ctx context.Context) {
	for _, r := range runtimes() {
		path, err := exec.LookPath(r.name)
		if err != nil {
			e.add(r.name, warning, "not found on PATH", "install it where you need "+r.need)
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		out, err := exec.CommandContext(limited, path, r.args).CombinedOutput()
		cancel()
		if err != nil {
			e.add(r.name, failed, fmt.Sprintf("%s does not run: %v", path, err), "install it again")
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		e.add(r.name, ok, first+" ("+path+")", "")
	}
}

func (e *examination) checkSandbox(ctx context.Context) {
	p := process.ProbeSandbox(ctx)
	detail := "level " + p.Level.String()
	if p.OwnUID {
		detail += ", each app with a user id of its own"
	}
	if p.Reason != "" {
		detail += " (" + p.Reason + ")"
	}
	result := ok
	switch {
	case p.Level == sandbox.LevelNone:
		result = failed
	case p.Level < sandbox.LevelNamespaces:
		result = warning
	}
	if e.config != nil && p.Level < e.config.Sandbox.Required {
		result = failed
	}
	e.add("sandbox", result, detail, "use a kernel with Landlock and unprivileged user namespaces (docs/security.md)")
}
