package permit

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Guard decides what may be granted to apps, and by whom.
type Guard struct {
	Home      string            // the server's home
	Env       map[string]string // the server's environment
	Protected []string          // other paths that belong to the server
	Ports     func() []int      // ports of the server, its database and its plugins; nil for none
	Grantable config.Granters
	Shared    []string
}

// MayGrant returns core.CodeForbidden if a caller may not grant access. To restrict an app's connections, a caller
// only needs the right to manage apps.
func (g *Guard) MayGrant(c core.Caller, a core.Access) error {
	if err := c.MayManageApps(); err != nil {
		return err
	}
	switch {
	case a.Kind == core.PermissionNetOnly:
		return nil
	case g.Grantable == config.GrantersNobody:
		return core.Errorf(core.CodeForbidden, "only the configuration can grant permissions: sandbox.grantable is nobody")
	case c.User.OrgRole.Admin(), g.Grantable == config.GrantersWorkspace:
		return nil
	case a.Kind.IsPath() && g.isShared(a.Target):
		return nil
	}
	return core.Errorf(core.CodeForbidden, "granting this requires an organization admin or owner: sandbox.grantable and sandbox.shared do not let a workspace admin do it")
}

// isShared reports whether a path is in a shared directory, both as written and with symbolic links resolved.
func (g *Guard) isShared(path string) bool {
	real := RealPath(path)
	return slices.ContainsFunc(g.Shared, func(dir string) bool {
		dir = filepath.Clean(dir)
		return (sandbox.PathWithin(filepath.Clean(path), dir) || sandbox.PathWithin(filepath.Clean(path), RealPath(dir))) && sandbox.PathWithin(real, RealPath(dir))
	})
}

// Check returns an access in the form in which it is recorded, with symbolic links in paths resolved. It returns
// core.CodeForbidden if the access cannot be granted, and core.CodeBadRequest if it is malformed.
func (g *Guard) Check(a core.Access) (core.Access, error) {
	var err error
	switch a.Kind {
	case core.PermissionRead, core.PermissionWrite:
		a.Target, err = g.checkPath(a.Target, a.Kind == core.PermissionWrite)
	case core.PermissionNet:
		a.Target, err = g.checkPort(a.Target)
	case core.PermissionNetOnly:
		err = checkDestination(a.Target)
	case core.PermissionEnv:
		err = checkVariable(a.Target)
	default:
		err = core.Errorf(core.CodeBadRequest, "kind is %.50q; it must be read, write, net, netOnly or env", a.Kind)
	}
	return a, err
}

func (g *Guard) checkPath(path string, write bool) (real string, err error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", core.Errorf(core.CodeBadRequest, "%.200q is not an absolute path on the server's machine", path)
	}
	real, err = filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if why := g.protects(RealPath(path), write); why != "" { // do not reveal whether a protected path exists
			return "", onlyConfiguration(path, why)
		}
		return "", core.Errorf(core.CodeBadRequest, "%s does not exist on the server's machine", path)
	case err != nil:
		return "", core.Errorf(core.CodeForbidden, "the server itself cannot open %s", path)
	}
	if why := g.protects(real, write); why != "" {
		return "", onlyConfiguration(path, why)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", core.Errorf(core.CodeForbidden, "the server itself cannot open %s", path)
	case !info.IsDir() && !info.Mode().IsRegular():
		return "", onlyConfiguration(path, "it is neither a file nor a directory")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && !info.IsDir() && stat.Nlink > 1 {
		return "", onlyConfiguration(path, "the file has other names (hard links), which may be protected")
	}
	return real, checkServerAccess(real, info, write)
}

// CheckProtected is like Check, for a path that the configuration or an administrator has allowed by other means. It
// rejects only protected paths and malformed ones.
func (g *Guard) CheckProtected(a core.Access) (core.Access, error) {
	if !filepath.IsAbs(a.Target) || strings.ContainsRune(a.Target, 0) {
		return a, core.Errorf(core.CodeBadRequest, "%.200q is not an absolute path on the server's machine", a.Target)
	}
	real := RealPath(a.Target)
	if why := g.protects(real, a.Kind == core.PermissionWrite); why != "" {
		return a, onlyConfiguration(a.Target, why)
	}
	a.Target = real
	return a, nil
}

// checkServerAccess returns an error if the server's user cannot open a path, or if only root can.
func checkServerAccess(path string, info fs.FileInfo, write bool) error {
	mode := uint32(unix.R_OK)
	if info.IsDir() {
		mode |= unix.X_OK
	}
	if write {
		mode |= unix.W_OK
	}
	if unix.Access(path, mode) != nil {
		return core.Errorf(core.CodeForbidden, "the server's own user does not have that access to %s", path)
	}
	if os.Geteuid() == 0 {
		if why := onlyRoot(path, info, write); why != "" {
			return onlyConfiguration(path, why)
		}
	}
	return nil
}

// maxCheckedEntries limits how many files in a directory are checked for being readable only by root.
const maxCheckedEntries = 10_000

// onlyRoot returns why a path must not be granted on a server that runs as root: only root can read the path, a
// directory above it or, for writing, something inside it. It returns "" if there is no such reason.
//
// An app that only reads does not get root's rights. But in a root-owned directory that is granted for writing, the app
// acts as the owner of root's files, so everything in it must be checked.
func onlyRoot(path string, info fs.FileInfo, write bool) (why string) {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if above, err := os.Stat(dir); err != nil || isRootOnly(above, 0o001) {
			return "only root can read " + dir
		}
	}
	if isRootOnly(info, 0o004) {
		return "only root can read " + path
	}
	if !write || !info.IsDir() {
		return ""
	}
	seen := 0
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxCheckedEntries {
			return errors.Join(err, errUnchecked)
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		below, err := entry.Info()
		if err == nil && isRootOnly(below, 0o004) {
			why = "only root can read " + file
			return fs.SkipAll
		}
		return err
	})
	if err != nil && ownedByRoot(info) {
		return "it belongs to root, and contains too much to check"
	}
	return why
}

var errUnchecked = errors.New("not everything was checked")

// isRootOnly reports whether a file belongs to root and other users lack a permission.
func isRootOnly(info fs.FileInfo, permission fs.FileMode) bool {
	return ownedByRoot(info) && info.Mode().Perm()&permission == 0
}

func ownedByRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}

func onlyConfiguration(what, why string) error {
	return core.Errorf(core.CodeForbidden, "access to %s can be allowed only in the configuration (the app's sandbox.read or sandbox.write): %s", what, why)
}

// checkPort returns a port on this machine in the form in which it is recorded, so that a decision about LOCALHOST:080
// is one about localhost:80. It returns an error if target is not a port on this machine, or if it is a protected port.
func (g *Guard) checkPort(target string) (recorded string, err error) {
	host, text, err := net.SplitHostPort(target)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || port < 1 || !isLoopback(host) {
		return "", core.Errorf(core.CodeBadRequest, "%.200q is not a port on this machine: use localhost:PORT; other machines can be reached unless the app is restricted", target)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	switch {
	case slices.Contains([]uint64{2375, 2376}, port):
		return "", core.Errorf(core.CodeForbidden, "access to %s can be allowed only in the configuration (the app's sandbox.network): it is a Docker port", target)
	case port >= 6000 && port < 6064:
		return "", core.Errorf(core.CodeForbidden, "access to %s can be allowed only in the configuration (the app's sandbox.network): it is a display's port", target)
	case g.Ports != nil && slices.Contains(g.Ports(), int(port)):
		return "", core.Errorf(core.CodeForbidden, "access to %s can be allowed only in the configuration (the app's sandbox.network): it belongs to this server, its database or its plugins", target)
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(port, 10)), nil
}

// checkDestination returns an error if target is not a destination, or if it is on this machine, because a restriction
// to it would block all other connections.
func checkDestination(target string) error {
	_, err := sandbox.ParseNetwork([]string{target})
	host, _, splitErr := net.SplitHostPort(target)
	switch {
	case err != nil || splitErr != nil:
		return core.Errorf(core.CodeBadRequest, "%.200q is not a destination: use host:port, where the port may be *", target)
	case isLoopback(host):
		return core.Errorf(core.CodeBadRequest, "%.200q is on the server's machine: netOnly restricts connections to other machines; allow the kind net as well, and another destination here", target)
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)

// secretWords matches variables that contain secrets, lead to sockets or agents, or make programs load code.
var secretWords = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASS|CREDENTIAL|COOKIE|PRIVATE|AUTH|DSN|DATABASE_URL)|^(ROPEWALK_|SERVICE_|LD_|DYLD_|DBUS_|WAYLAND_|XDG_)|_SOCK$|_AGENT|^(DISPLAY|XAUTHORITY|DOCKER_HOST|HOME|TMPDIR|PATH|NODE_OPTIONS|PYTHONPATH|PYTHONSTARTUP|PYTHONHOME|BASH_ENV|ENV|PERL5OPT|PERL5LIB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS)$`)

func checkVariable(name string) error {
	switch {
	case !variableName.MatchString(name):
		return core.Errorf(core.CodeBadRequest, "%.100q is not the name of a variable", name)
	case secretWords.MatchString(name):
		return core.Errorf(core.CodeForbidden, "the server's variable %s cannot be passed to an app this way: it looks like a secret, leads to a socket or loads code; give the app its own value with `ropewalk app configure --env`", name)
	}
	return nil
}

// RealPath resolves the symbolic links in the part of a path that exists.
func RealPath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(RealPath(dir), filepath.Base(path))
	}
	return path
}
