package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
)

// inWords replaces an app's machine-readable fields with human-readable text, and omits fields without information.
func inWords(fields map[string]json.RawMessage) {
	sourceInWords(fields)
	sandboxInWords(fields)
	settingsInWords(fields)
	var view struct{ PrimaryView struct{ ResourceURI string } }
	if take(fields, "ui", &view) {
		put(fields, "view", view.PrimaryView.ResourceURI)
	}
	var trust int
	if take(fields, "trustScore", &trust) && trust > 0 {
		put(fields, "trust", fmt.Sprintf("%d of 100, according to the registry", trust))
	}
	var kind string
	if take(fields, "type", &kind) && kind != "plain" {
		put(fields, "framework", kind)
	}
	var protected bool
	if take(fields, "protected", &protected) && protected {
		put(fields, "protected", "it cannot be uninstalled, because the configuration protects it")
	}
	var instances int
	if take(fields, "instances", &instances) && instances > 0 {
		put(fields, "instances", fmt.Sprintf("%d in addition to the shared one", instances))
	}
	var env []string
	if take(fields, "env", &env) && len(env) > 0 {
		put(fields, "environment", strings.Join(env, ", ")+" (values are not shown)")
	}
}

// take decodes a field and removes it. It leaves a value of another type in place.
func take(fields map[string]json.RawMessage, name string, into any) bool {
	raw, ok := fields[name]
	if !ok || string(raw) == "null" || json.Unmarshal(raw, into) != nil {
		return false
	}
	delete(fields, name)
	return true
}

// put sets a field to a string.
func put(fields map[string]json.RawMessage, name, text string) {
	if raw, err := json.Marshal(text); err == nil { // encoding text cannot fail
		fields[name] = raw
	}
}

func sourceInWords(fields map[string]json.RawMessage) {
	var s struct{ Kind, Ref, Registry string }
	if !take(fields, "source", &s) {
		return
	}
	text := map[string]string{
		"npm": "the npm package ", "pypi": "the PyPI package ", "path": "the path ", "url": "the address ", "command": "the command ",
	}[s.Kind] + s.Ref
	if s.Registry != "" {
		text += fmt.Sprintf(" from the registry %q", s.Registry)
	}
	put(fields, "source", text)
}

func sandboxInWords(fields map[string]json.RawMessage) {
	var s core.AppSandbox
	if !take(fields, "sandbox", &s) {
		return
	}
	text := map[string]string{
		"namespaces": "namespaces: its own files, processes and network", "landlock": "landlock: some files and system calls only", "none": "none: it is not confined",
	}[s.Level]
	if text == "" {
		text = s.Level
	}
	if s.OwnUser {
		text += ", its own user ID"
	}
	if s.Weaker != "" {
		text += " (weaker than configured: " + s.Weaker + ")"
	}
	put(fields, "sandbox", text)
	if text := limitsInWords(s.Limits); text != "" {
		if len(s.Cgroup) > 0 {
			text += " (" + strings.Join(s.Cgroup, " and ") + " enforced by the kernel)"
		}
		put(fields, "limits", text)
	}
	switch network := strings.Join(s.Network, ", "); network {
	case "all":
		put(fields, "network", "other machines, and services on this one")
	case "loopback-off":
		put(fields, "network", "other machines, but no services on this one")
	default:
		put(fields, "network", network)
	}
}

// limitsInWords lists the limits that are set.
func limitsInWords(l core.AppLimits) string {
	var all []string
	for _, one := range []struct {
		value float64
		of    string
	}{
		{float64(l.MemoryMiB), "MiB of memory"}, {float64(l.Processes), "processes"}, {l.CPU, "processors"},
		{float64(l.OpenFiles), "open files"}, {float64(l.FileSizeMiB), "MiB per file"},
	} {
		if one.value > 0 {
			all = append(all, strconv.FormatFloat(one.value, 'f', -1, 64)+" "+one.of)
		}
	}
	return strings.Join(all, ", ")
}

// settingsInWords returns a line for each field of the app's user_config.
func settingsInWords(fields map[string]json.RawMessage) {
	var settings map[string]apps.ConfigField
	if !take(fields, "userConfig", &settings) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s := settings[name]
		words := []string{"not set"}
		if s.IsSet {
			words[0] = "set"
		}
		if s.Required {
			words = append(words, "required")
		}
		if s.Sensitive {
			words = append(words, "secret")
		}
		text := strings.Join(words, ", ")
		if about := s.Description; about != "" {
			text += ": " + about
		} else if s.Title != "" {
			text += ": " + s.Title
		}
		put(fields, "setting."+name, text)
	}
}
