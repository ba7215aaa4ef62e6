package apps

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// variables are the values of a registry package's variables, by name, and the required ones that
// neither env nor a default supplies (contract part 3).
func variables(pkg registry.Package, env map[string]core.Secret) (values map[string]string, missing []bundle.MissingValue) {
	values = make(map[string]string, len(pkg.Variables))
	for _, v := range pkg.Variables {
		value := cmp.Or(env[v.Name].Reveal(), v.Default)
		if value == "" && v.Required {
			missing = append(missing, bundle.MissingValue{
				Name: v.Name, Title: cmp.Or(v.Title, v.Name), Description: v.Description, Sensitive: v.Secret,
			})
		}
		values[v.Name] = value
	}
	return values, missing
}

// fill puts values in the place of {name}, each once: what a value brings in is not looked at.
func fill(template string, values map[string]string) string {
	pairs := make([]string, 0, 2*len(values))
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(template)
}

// userConfig declares a package's variables the way a bundle does, so that an app that came as a
// package is launched, checked and redacted like any other.
func userConfig(pkg registry.Package) (fields map[string]any, env map[string]string) {
	fields, env = map[string]any{}, map[string]string{}
	for _, v := range pkg.Variables {
		field := map[string]any{
			"type": "string", "title": cmp.Or(v.Title, v.Name), "description": cmp.Or(v.Description, v.Name),
			"required": v.Required, "sensitive": v.Secret,
		}
		if v.Default != "" {
			field["default"] = v.Default
		}
		fields[v.Name] = field
		env[v.Name] = "${user_config." + v.Name + "}"
	}
	return fields, env
}

// packageManifest writes the manifest that a package has none of. command and args may use
// ${__dirname}.
func packageManifest(pkg registry.Package, kind bundle.ServerType, command string, args []string) (*bundle.Manifest, error) {
	fields, env := userConfig(pkg)
	raw, err := json.Marshal(map[string]any{
		"manifest_version": "0.3",
		"name":             pkg.Name,
		"display_name":     cmp.Or(pkg.Title, pkg.Name),
		"version":          pkg.Version,
		"description":      cmp.Or(pkg.Description, pkg.Name),
		"author":           map[string]string{"name": "unknown"},
		"server": map[string]any{
			"type":       kind,
			"mcp_config": map[string]any{"command": command, "args": args, "env": env},
		},
		"user_config": fields,
	})
	if err != nil {
		return nil, err
	}
	return bundle.ParseManifest(raw)
}
