package instance

import (
	"fmt"
	"slices"

	"github.com/kballard/go-shellquote"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// CheckGrant returns core.CodeForbidden for a path that an app with these settings could not use because it runs under
// its own user ID.
func (c Confinement) CheckGrant(s config.Sandbox, dataDir string, a core.Access) error {
	if !a.Kind.IsPath() || !c.ownUser(s) {
		return nil
	}
	uid := process.AppUID(dataDir)
	_, err := c.way(a, uid, c.Level(s))
	if err == nil {
		return nil
	}
	return core.Errorf(core.CodeForbidden, "the app cannot be granted access to %s: it runs under its own user ID, %d, and %v; to allow access, run setfacl -R -m u:%d:rwX,d:u:%d:rwX %s", a.Target, uid, err, uid, uid, shellquote.Join(a.Target))
}

// way determines how an app's own user gets access to a path: through a mount that maps the path's owner to that user,
// or directly. A mapped mount is preferred, so that the owner can use the files that the app writes. Root-owned paths
// are mapped only for writing; an app that only reads does not get root's rights.
func (c Confinement) way(a core.Access, uid int, level sandbox.Level) (mapped bool, err error) {
	write := a.Kind == core.PermissionWrite
	owner, err := sandbox.OwnerOf(a.Target)
	if err != nil {
		return false, err
	}
	err = fmt.Errorf("at level %s its owner cannot be mapped", level)
	if level >= sandbox.LevelNamespaces && (write || owner.UID != 0) {
		mount, mapErr := process.OpenMapped(a.Target, uid, write)
		if mapErr == nil {
			return true, mount.Close()
		}
		err = mapErr
	}
	if sandbox.Accessible(a.Target, uid, write, level) {
		return false, nil
	}
	return false, err
}

// addGrants adds the granted paths to the profile. A path that the app's own user cannot access is logged and skipped.
func (s *Starter) addGrants(p *sandbox.Profile, spec Spec) {
	for _, a := range spec.Grants {
		if !a.Kind.IsPath() || slices.Contains(p.Exact, a.Target) {
			continue
		}
		write := a.Kind == core.PermissionWrite
		if p.UID != 0 {
			mapped, err := s.Confinement.way(a, p.UID, p.Level)
			if err != nil {
				spec.Logger.Warn("ignoring a granted path: the app's own user cannot access it", "path", a.Target, "error", err)
				continue
			}
			if mapped {
				p.Mapped = append(p.Mapped, sandbox.Mapped{Path: a.Target, Write: write})
			}
		}
		p.Exact = append(p.Exact, a.Target)
		if write {
			p.Write = append(p.Write, a.Target)
		} else {
			p.Read = append(p.Read, a.Target)
		}
	}
}

// network combines the configured network rules with the grants. The configuration wins: if it allows no connections,
// or has its own list, no grant adds to it.
func network(n sandbox.Network, grants []core.Access) sandbox.Network {
	var ports, only []string
	for _, a := range grants {
		switch a.Kind {
		case core.PermissionNet:
			ports = append(ports, a.Target)
		case core.PermissionNetOnly:
			only = append(only, a.Target)
		default:
		}
	}
	switch {
	case n.Mode == sandbox.NetworkNone:
	case len(n.Allow) > 0 && len(only) > 0:
		n.Allow = slices.DeleteFunc(slices.Clone(n.Allow), func(d string) bool { return !slices.Contains(only, d) })
		if len(n.Allow) == 0 {
			n = sandbox.Network{Mode: sandbox.NetworkNone}
		}
	case len(n.Allow) > 0:
	case n.Mode != sandbox.NetworkAll: // this only restricts connections, so whoever may manage the app may grant it
		n.Also, n.Only = slices.Concat(n.Also, ports), only
	case len(only) > 0:
		n = sandbox.Network{Allow: slices.Concat(only, ports)}
	}
	return n
}

// grantedVariables returns the names of the granted variables of the server's environment.
func grantedVariables(spec Spec) (names []string) {
	for _, a := range spec.Grants {
		if a.Kind == core.PermissionEnv {
			names = append(names, a.Target)
		}
	}
	return names
}

// denied returns the function to call when a process was denied a connection to a service on this machine, or when a
// traced process opens a file. It returns nil if nothing listens for denials.
func (s Spec) denied(p *sandbox.Profile) func(kind, target string, count int) {
	if s.OnDenied == nil || p == nil {
		return nil
	}
	return func(kind, target string, count int) {
		a := core.Access{Kind: core.PermissionKind(kind), Target: target}
		if !a.Kind.IsPath() || !p.Covers(target, a.Kind == core.PermissionWrite) {
			s.OnDenied(a, count)
		}
	}
}

// canKeepUser reports whether an app can use the paths from its user_config under its own user ID.
func (s *Starter) canKeepUser(spec Spec, level sandbox.Level) bool {
	uid := process.AppUID(spec.DataDir)
	return !slices.ContainsFunc(spec.UserConfigGrants, func(a core.Access) bool {
		_, err := s.Confinement.way(a, uid, level)
		return err != nil
	})
}
