package instance

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// CheckGrant refuses a path that an app with these settings could not use with the user id of its own that it has.
func (c Confinement) CheckGrant(s config.Sandbox, dataDir string, a core.Access) error {
	if !a.Kind.IsPath() || !c.ownUser(s) {
		return nil
	}
	uid := process.AppUID(dataDir)
	_, err := c.way(a, uid, c.Level(s))
	if err == nil {
		return nil
	}
	return core.Errorf(core.CodeForbidden, "%s cannot be given to the app, which has the user id %d of its own on this server: %v; to allow it, run setfacl -R -m u:%d:rwX,d:u:%d:rwX %s", a.Target, uid, err, uid, uid, a.Target)
}

// way says how a user of an app's own gets a path: through a mount that maps its owner to that user, or as it is. A mapped
// mount comes first, so that the owner can use what the app writes. What root owns is mapped to be written only: to read,
// an app has no rights of root.
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

// addGrants adds the paths that people granted. One that the app's own user cannot use stays closed.
func (s *Starter) addGrants(p *sandbox.Profile, spec Spec) {
	for _, a := range spec.Grants {
		if !a.Kind.IsPath() || slices.Contains(p.Exact, a.Target) {
			continue
		}
		write := a.Kind == core.PermissionWrite
		if p.UID != 0 {
			mapped, err := s.Confinement.way(a, p.UID, p.Level)
			if err != nil {
				spec.Logger.Warn("a granted path stays closed: the app's own user cannot use it", "path", a.Target, "error", err)
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

// network is what the configuration says with the grants. It wins: where it names no connections, or its own list, no
// grant opens more.
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
	case len(only) > 0:
		n = sandbox.Network{Allow: slices.Concat(only, ports)}
	case n.Mode != sandbox.NetworkAll:
		n.Also = slices.Concat(n.Also, ports)
	}
	return n
}

// grantedVariables are the variables of the server's environment that people granted.
func grantedVariables(spec Spec) (names []string) {
	for _, a := range spec.Grants {
		if a.Kind == core.PermissionEnv {
			names = append(names, a.Target)
		}
	}
	return names
}

// denied is what a process calls for each service of this machine that it was refused.
func (s Spec) denied() func(target string, count int) {
	if s.OnDenied == nil {
		return nil
	}
	return func(target string, count int) {
		s.OnDenied(core.Access{Kind: core.PermissionNet, Target: target}, count)
	}
}

// keepsUser reports whether an app can use what user_config gives it with a user id of its own.
func (s *Starter) keepsUser(spec Spec, level sandbox.Level) bool {
	uid := process.AppUID(spec.DataDir)
	return !slices.ContainsFunc(spec.Given, func(a core.Access) bool {
		_, err := s.Confinement.way(a, uid, level)
		return err != nil
	})
}
