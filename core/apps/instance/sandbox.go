package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Confinement holds the settings that the sandboxes of all apps share.
type Confinement struct {
	Probe process.Probe
	Home  string   // the server's home, of which apps can access only their own directories
	Hide  []string // more of the server's paths that apps cannot access
	// Ports returns the ports of the server, its database and its plugins, on which no app may listen. nil for none.
	Ports func() []int

	Cgroups   *cgroup.Tree // limits the process trees of apps; nil if not available
	NoCgroups string       // why Cgroups is nil
}

// EnforcedLimits returns the limits that are actually enforced for an app with these settings. Cgroup limits are
// enforced at every level, the others only in a sandbox.
func (c Confinement) EnforcedLimits(s config.Sandbox) sandbox.Limits {
	if c.Level(s) > sandbox.LevelNone {
		return s.Limits
	}
	enforced, _ := c.Cgroups.Bounds().Split(s.Limits)
	return enforced
}

// Level returns the sandbox level at which an app with these settings runs.
func (c Confinement) Level(s config.Sandbox) sandbox.Level { return min(s.Level, c.Probe.Level) }

// ownUser reports whether an app with these settings gets its own user ID, provided that its files allow it.
func (c Confinement) ownUser(s config.Sandbox) bool {
	return c.Probe.OwnUID && c.Level(s) > sandbox.LevelNone && len(s.Write) == 0
}

// profile returns the sandbox profile of a process; nil for no sandbox. It is based on the configuration, the location
// of the bundle, the programs that run it and the grants. The manifest has no influence on it.
func (s *Starter) profile(spec Spec, launch bundle.Launch) (*sandbox.Profile, error) {
	settings := spec.Sandbox
	level := s.Confinement.Level(settings)
	if level < settings.Required {
		return nil, fmt.Errorf("sandbox level %q is required, but this machine supports only %q: %s", settings.Required, level, s.Confinement.Probe.Reason)
	}
	if level == sandbox.LevelNone {
		return nil, nil
	}
	if Within(s.Confinement.Home, spec.Record.Dir) {
		return nil, errors.New("the bundle's directory contains the server's home: move one of them")
	}
	p := &sandbox.Profile{
		Level: level, Network: network(settings.Network, spec.Grants), Limits: settings.Limits, Trace: spec.Trace,
		Hide: append([]string{s.Confinement.Home}, s.Confinement.Hide...),
	}
	if s.Confinement.Ports != nil {
		p.Taken = s.Confinement.Ports()
	}
	granted, err := s.granted(spec)
	if err != nil {
		return nil, err
	}
	p.Write = slices.Concat([]string{spec.DataDir}, settings.Write, granted)
	var own []string // the bundle and the packages it links to; a command has no directory
	if spec.Record.Dir != "" {
		own = append([]string{spec.Record.Dir}, LinkedPackages(spec.Record.Dir, s.Confinement.Home)...)
	}
	p.Read = append(sandbox.SystemPaths(), own...)
	runtimes := s.runtimes(spec, launch.Path)
	p.Read = slices.Concat(p.Read, runtimes, s.programs.list(s.searchPath(), s.protected()), settings.Read)
	if err := s.setUser(p, spec, launch.Path, runtimes); err != nil {
		return nil, err
	}
	s.addGrants(p, spec)
	return p, addLayers(p, spec, own)
}

// runtimes returns the paths of the runtimes that the app needs. If the manifest names a program outside the server's
// search path, only that program becomes readable.
func (s *Starter) runtimes(spec Spec, program string) []string {
	if spec.Record.Dir == "" || slices.Contains(s.searchPath(), filepath.Dir(program)) {
		return sandbox.RuntimePaths(program, s.searchPath(), s.protected())
	}
	return sandbox.ForeignRuntimePaths(program, s.searchPath(), s.protected())
}

func (s *Starter) searchPath() []string { return filepath.SplitList(s.HostEnv["PATH"]) }

// protected returns the directories that do not become readable even if a program is inside them.
func (s *Starter) protected() []string { return []string{s.Confinement.Home, s.HostEnv["HOME"]} }

// granted returns the directories that the configuration grants to a declared app, if that app is installed from a path
// on this machine. The app may have been given other values since then. Such values grant nothing: permissions granted
// by people are in Spec.Grants.
func (s *Starter) granted(spec Spec) ([]string, error) {
	if spec.Record.Source.Kind != core.SourcePath {
		return nil, nil
	}
	m, err := bundle.ParseManifest(spec.Record.Manifest)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, path := range m.GrantedPaths(spec.Declared) {
		switch {
		case !filepath.IsAbs(path):
		case Within(path, s.Confinement.Home) || Within(s.Confinement.Home, path):
			return nil, fmt.Errorf("an app cannot be granted access to %q, which contains the server's home or is inside it", path)
		default:
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// setUser gives the app its own user ID if that user can read everything the app needs. Directories that the
// configuration makes writable belong to the server's user, so an app with such directories runs as that user.
func (s *Starter) setUser(p *sandbox.Profile, spec Spec, program string, runtimes []string) error {
	own := s.Confinement.ownUser(spec.Sandbox) && len(p.Write) == 1
	own = own && s.canKeepUser(spec, p.Level)
	if own && Within(spec.Record.Dir, s.Confinement.Home) {
		if err := publish(spec.Record.Dir); err != nil {
			return fmt.Errorf("its files cannot be made readable: %w", err)
		}
	}
	for _, path := range append([]string{spec.Record.Dir}, runtimes...) {
		own = own && readableByAll(path)
	}
	if own && p.Level < sandbox.LevelNamespaces { // below that level, the app sees the machine's parent directories
		p.Group = process.AppsGroup
		for _, path := range append([]string{spec.DataDir, spec.Record.Dir, program}, runtimes...) {
			reachable, err := openWay(path)
			if err != nil {
				return fmt.Errorf("the directories above its own cannot be made accessible: %w", err)
			}
			own = own && reachable
		}
	}
	if own {
		p.UID = process.AppUID(spec.DataDir)
	}
	if !s.Confinement.Probe.OwnUID {
		return nil
	}
	if err := process.Own(spec.DataDir, p.UID, temporaryDir); err != nil { // the directory may have just been created
		return fmt.Errorf("its data directory cannot be transferred to its user: %w", err)
	}
	return nil
}

// openWay gives the group of all apps the permission to pass through those directories above a path that only the
// server's user could pass. It reports whether an app's own user can now pass through all of them. Only apps are in
// that group, and their sandbox denies them everything else in these directories.
func openWay(path string) (reachable bool, err error) {
	for dir := filepath.Dir(path); filepath.IsAbs(path); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return false, err
		}
		mode, owner := info.Mode().Perm(), info.Sys().(*syscall.Stat_t)
		switch {
		case mode&0o001 != 0 || owner.Gid == process.AppsGroup && mode&0o010 != 0:
		case int(owner.Uid) != os.Geteuid() || mode&0o070 != 0: // the operator may have given the group access
			return false, nil
		default:
			if err := errors.Join(os.Chown(dir, -1, process.AppsGroup), os.Chmod(dir, mode|0o010)); err != nil {
				return false, err
			}
		}
		if dir == "/" {
			break
		}
	}
	return true, nil
}

// publish makes the files of an installed bundle readable by all users. The server's home, which contains them,
// remains inaccessible to other users.
func publish(dir string) error {
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o005 == 0o005 {
		return err
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()|readBits(info.Mode()))
	})
	if err != nil {
		return err
	}
	return os.Chmod(dir, 0o755) //nolint:gosec // last, because it marks the bundle as readable
}

func readBits(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() || mode.Perm()&0o100 != 0 {
		return 0o055
	}
	return 0o044
}

// maxCheckedEntries limits how many entries of a directory are checked.
const maxCheckedEntries = 200

// readableByAll reports whether every user may read a path and, for a directory, its first entries. A path that does
// not exist counts as readable.
func readableByAll(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if !info.IsDir() {
		return info.Mode().Perm()&0o004 != 0
	}
	if info.Mode().Perm()&0o005 != 0o005 {
		return false
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	for _, entry := range entries[:min(len(entries), maxCheckedEntries)] {
		if info, err := entry.Info(); err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o004 == 0 {
			return false
		}
	}
	return true
}

// LinkedPackages returns the installed packages that a bundle directory shares through a symbolic link: the targets of
// node_modules and of virtual environments. In the sandbox, other links out of the bundle are dangling.
func LinkedPackages(dir, home string) []string {
	var found []string
	for _, name := range []string{"node_modules", "venv", ".venv"} {
		target, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || Within(target, dir) || Within(home, target) || Within(target, home) {
			continue
		}
		_, venv := os.Stat(filepath.Join(target, "pyvenv.cfg"))
		if filepath.Base(target) == "node_modules" || venv == nil {
			found = append(found, target)
		}
	}
	return found
}

// Within reports whether path is dir or is inside it.
func Within(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}
