package config

import (
	"path/filepath"
	"slices"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Sandbox configures how an app's processes are confined.
type Sandbox struct {
	Level    sandbox.Level // the strongest to use
	Required sandbox.Level // the weakest level at which the app may start
	Network  sandbox.Network
	Limits   sandbox.Limits
	Read     []string // absolute
	Write    []string // absolute

	Grantable Granters // only in the global section, like Shared
	Shared    []string // absolute; what workspace admins may grant
}

// Granters specifies who may grant permissions to apps.
type Granters string

// The Granters.
const (
	GrantersNobody    Granters = "nobody"
	GrantersOrg       Granters = "organizationAdmins" // plus workspace admins, within Sandbox.Shared
	GrantersWorkspace Granters = "workspaceAdmins"
)

// sandboxSection is the structure in the file. nil fields are inherited.
type sandboxSection struct {
	Level       *string  `json:"level"`
	Required    *string  `json:"required"`
	Network     any      `json:"network"`
	MemoryMiB   *int64   `json:"memoryMiB"`
	Processes   *int     `json:"processes"`
	OpenFiles   *int     `json:"openFiles"`
	FileSizeMiB *int64   `json:"fileSizeMiB"`
	CPU         *float64 `json:"cpu"`
	Read        []string `json:"read"`
	Write       []string `json:"write"`
	Grantable   string   `json:"grantable"`
	Shared      []string `json:"shared"`
}

// over returns base with the section's settings on top.
func (s sandboxSection) over(base Sandbox, dir string) Sandbox {
	level := func(name *string, to *sandbox.Level) {
		if name == nil {
			return
		}
		if l, err := sandbox.ParseLevel(*name); err == nil { // the schema has rejected all others
			*to = l
		}
	}
	level(s.Level, &base.Level)
	level(s.Required, &base.Required)
	if s.Network != nil {
		base.Network, _ = sandbox.ParseNetwork(s.network()) // the check reports an error
	}
	set(&base.Limits.Memory, s.MemoryMiB, 1<<20)
	set(&base.Limits.Processes, s.Processes, 1)
	set(&base.Limits.OpenFiles, s.OpenFiles, 1)
	set(&base.Limits.FileSize, s.FileSizeMiB, 1<<20)
	set(&base.Limits.CPU, s.CPU, 1)
	base.Read = slices.Concat(base.Read, absoluteAll(dir, s.Read))
	base.Write = slices.Concat(base.Write, absoluteAll(dir, s.Write))
	if s.Grantable != "" {
		base.Grantable = Granters(s.Grantable)
	}
	base.Shared = slices.Concat(base.Shared, absoluteAll(dir, s.Shared))
	return base
}

func (s sandboxSection) network() []string {
	if one, ok := s.Network.(string); ok {
		return []string{one}
	}
	return stringList(s.Network)
}

func set[T int | int64 | float64](to, value *T, unit T) {
	if value != nil {
		*to = *value * unit
	}
}

func absoluteAll(dir string, paths []string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, absolute(dir, path))
	}
	return out
}

// checkSandbox checks the destinations, and that no path gives access to the whole machine.
func (k *check) checkSandbox(at string, s *sandboxSection) {
	if s.Network != nil {
		if _, err := sandbox.ParseNetwork(s.network()); err != nil {
			k.add(at+".network", "%v", err)
		}
	}
	for key, paths := range map[string][]string{"read": s.Read, "write": s.Write, "shared": s.Shared} {
		for _, path := range paths {
			if path == "" || filepath.Clean(path) == "/" {
				k.add(at+"."+key, "must list the directories that are needed, not the whole machine")
			}
		}
	}
}
