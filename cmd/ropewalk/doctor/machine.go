package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func (e *examination) checkHome() {
	home := e.home
	info, err := os.Stat(home)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if err := config.CheckHome(home); err != nil {
			detail, remedy, _ := strings.Cut(err.Error(), "; ")
			e.add("home", failed, detail, remedy)
			return
		}
		e.add("home", ok, home+" will be created on the first start", "")
	case err != nil:
		e.add("home", failed, err.Error(), "make the directory readable by the server's user")
	case !info.IsDir():
		e.add("home", failed, home+" is not a directory", "choose another home with --home or ROPEWALK_HOME")
	default:
		if err := writable(home); err != nil {
			e.add("home", failed, fmt.Sprintf("cannot write to %s: %s", home, err), homeRemedy(err))
			return
		}
		if info.Mode().Perm()&0o022 != 0 {
			e.add("home", failed, fmt.Sprintf("%s is writable by other users (mode %o)", home, info.Mode().Perm()), "chmod 700 "+home)
			return
		}
		e.add("home", ok, home, "")
	}
}

// writable writes a few bytes to a directory.
func writable(dir string) error {
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return bare(err)
	}
	_, err = probe.Write(make([]byte, 64<<10))
	return bare(errors.Join(err, probe.Close(), os.Remove(probe.Name())))
}

// bare returns the reason why a file operation failed, without the file name.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func homeRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "mount it read-write, or choose another home with --home or ROPEWALK_HOME"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space there, or choose another home with --home or ROPEWALK_HOME"
	}
	return "make it writable by the server's user, or choose another home with --home or ROPEWALK_HOME"
}

// If there is less free space than this, a finding is reported.
const (
	littleSpace    = 1 << 30
	tooLittleSpace = 100 << 20
)

func (e *examination) checkDisk() {
	dir := e.home
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
	case free < tooLittleSpace:
		result = failed
	case free < littleSpace:
		result = warning
	}
	e.add("disk", result, space(free)+" free at "+dir, "free some space: installations and the database need it")
}

func space(bytes uint64) string {
	if bytes < littleSpace {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// checkClock checks that the clock is not set to before this version was built. With such a clock,
// certificates and tokens would be rejected.
func (e *examination) checkClock() {
	built, err := time.Parse(time.RFC3339, e.o.Date)
	now := time.Now()
	if err == nil && now.Before(built) {
		e.add("clock", failed, fmt.Sprintf("it is set to %s, before this version was built (%s)", now.UTC().Format(time.RFC3339), e.o.Date), "synchronize the clock (NTP)")
		return
	}
	e.add("clock", ok, now.UTC().Format(time.RFC3339), "")
}

// checkCertificates checks that https addresses can be verified.
func (e *examination) checkCertificates() {
	pool, err := x509.SystemCertPool()
	if err != nil || pool.Equal(x509.NewCertPool()) {
		e.add("certificates", warning, "this machine has no root certificates, so https addresses cannot be reached", "install them with apt-get install ca-certificates or dnf install ca-certificates")
		return
	}
	e.add("certificates", ok, "root certificates are installed", "")
}

// program is a program that bundles need. modules is code that imports the modules needed for an installation. oldest is the
// first major version that installations and most bundles support; 0 for any.
type program struct {
	name, args, need, modules string
	oldest                    int
}

func runtimes() []program {
	return []program{
		{"node", "--version", "bundles written in JavaScript, and npm packages", "", 20},
		{"npm", "--version", "npm packages", "", 0},
		{"python3", "--version", "bundles written in Python", "import venv, ensurepip", 0},
		{"uv", "--version", "PyPI packages and bundles of type uv", "", 0},
	}
}

// checkRuntime looks for a runtime on the PATH of the running server, which starts the apps, or else on this
// command's.
func (e *examination) checkRuntime(ctx context.Context, r program) {
	environment, place, restart := maps.Clone(config.HostEnvironment()), "PATH", ""
	if e.running != nil && e.running.SearchPath != "" && e.running.SearchPath != environment["PATH"] {
		environment["PATH"] = e.running.SearchPath
		place = "the server's PATH, " + e.running.SearchPath
		restart = "; if its directory is not on that PATH, add it and restart the server"
	}
	path, err := environment.LookPath(r.name)
	if err != nil {
		e.add(r.name, warning, "not found on "+place, "install it if you need "+r.need+restart)
		return
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	run := exec.CommandContext(limited, path, r.args)
	run.Env = append(os.Environ(), "PATH="+environment["PATH"]) // npm is a script that finds node there
	out, err := run.CombinedOutput()
	if limited.Err() != nil {
		e.addError(r.name, path, limited.Err(), "reinstall it")
		return
	}
	if err != nil {
		e.add(r.name, failed, fmt.Sprintf("%s cannot be run: %v", path, err), "reinstall it")
		return
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	major, _, _ := strings.Cut(strings.TrimPrefix(first, "v"), ".")
	if version, err := strconv.Atoi(major); err == nil && version < r.oldest {
		e.add(r.name, warning, fmt.Sprintf("%s (%s) is older than version %d", first, path, r.oldest),
			fmt.Sprintf("many packages do not work with it; install version %d or newer if you need %s", r.oldest, r.need))
		return
	}
	if r.modules != "" {
		run := exec.CommandContext(limited, path, "-c", r.modules)
		run.Env = append(os.Environ(), "PATH="+environment["PATH"])
		if run.Run() != nil && limited.Err() == nil {
			e.add(r.name, warning, first+" ("+path+") comes without venv or pip", "to install PyPI packages without uv: apt-get install python3-venv python3-pip on Debian and Ubuntu")
			return
		}
	}
	e.add(r.name, ok, first+" ("+path+")", "")
}

func (e *examination) checkSandbox(ctx context.Context) {
	p, limits, asked := e.sandboxOfServer()
	if !asked {
		p = process.ProbeSandbox(ctx)
	}
	detail := "level " + p.Level.String()
	if p.OwnUID {
		detail += ", each app with its own user ID"
	}
	if p.Reason != "" {
		detail += " (" + p.Reason + ")"
	}
	detail += limits
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
	e.add("sandbox", result, detail, sandboxRemedy(p.Chroot))
}

// sandboxOfServer reports what the running server can use to confine apps, and who enforces their limits: its
// unit or container may allow it less than this command.
func (e *examination) sandboxOfServer() (p process.Probe, limits string, asked bool) {
	if e.running == nil || e.running.Version != e.o.Version {
		return p, "", false
	}
	given := e.running.Sandbox
	level, err := sandbox.ParseLevel(given.Level)
	if err != nil {
		return p, "", false
	}
	limits = "; there are no cgroups (" + given.NoCgroups + "), so the server polls usage to enforce the limits"
	if len(given.Cgroup) > 0 {
		limits = "; the kernel enforces the limits on " + strings.Join(given.Cgroup, ", ")
	}
	return process.Probe{Level: level, OwnUID: given.OwnUser, Reason: given.Reason, Chroot: given.Chroot}, limits, true
}

// sandboxRemedy returns how to give apps the strongest sandbox.
func sandboxRemedy(chroot bool) string {
	if chroot {
		return "start the server outside the chroot, or in a container whose root is a mount of its own (pivot_root: systemd's RootDirectory=, " +
			"systemd-nspawn, bwrap, Docker, Podman); docs/security.md describes the levels"
	}
	return "use Linux 6.12 or newer with Landlock, and allow unprivileged user namespaces: set kernel.apparmor_restrict_unprivileged_userns=0 and " +
		"kernel.unprivileged_userns_clone=1 with sysctl; in a container, allow them in its seccomp profile too; in a systemd unit, remove " +
		"ProtectKernelTunables=, ProtectKernelLogs= and ProtectHostname=; docs/security.md describes the levels"
}
