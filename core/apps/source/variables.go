package source

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// values returns a function that looks up a package's variable in env, and falls back to the variable's default.
func values(env map[string]core.Secret) func(registry.Variable) (string, bool) {
	return func(v registry.Variable) (string, bool) {
		value := cmp.Or(env[v.Name].Reveal(), v.Default)
		return value, value != ""
	}
}

// checkVariables checks env against the variables of a package. It returns core.CodeCredentialsRequired if required
// values are missing, and core.CodeBadRequest if a value is not one of the choices.
func checkVariables(pkg registry.Package, env map[string]core.Secret) error {
	var missing []bundle.MissingValue
	for _, v := range pkg.Variables {
		value, ok := values(env)(v)
		switch {
		case !ok && (v.Required || strings.Contains(pkg.Remote.URL, "{"+v.Name+"}")):
			missing = append(missing, bundle.MissingValue{
				Name: v.Name, Title: cmp.Or(v.Title, v.Name), Description: v.Description, Sensitive: v.Secret,
			})
		case ok && len(v.Choices) > 0 && !slices.Contains(v.Choices, value):
			return badRequest("env.%s must be one of %s", v.Name, strings.Join(v.Choices, ", "))
		}
	}
	if len(missing) > 0 {
		return bundle.CredentialsRequired(missing)
	}
	return nil
}

// packageManifest generates a manifest for a package, which does not have one, so that an app from a package is
// started, checked and redacted like any other. The command may use ${__dirname}. Its arguments refer to variables
// through user_config.
func packageManifest(pkg registry.Package, kind bundle.ServerType, command bundle.CommandPart, runtimes map[string]string) (*bundle.Manifest, error) {
	fields, env := map[string]any{}, map[string]string{}
	for _, v := range pkg.Variables {
		field := map[string]any{
			"type": "string", "title": cmp.Or(v.Title, v.Name), "description": cmp.Or(v.Description, v.Name),
			"required": v.Required, "sensitive": v.Secret,
		}
		if v.Default != "" {
			field["default"] = v.Default
		}
		fields[v.Name] = field
		if !pkg.Places(v.Name) && !strings.ContainsRune(v.Name, '.') { // a name with a dot is only for arguments
			env[v.Name] = userConfig(v)
		}
	}
	manifest := map[string]any{
		"manifest_version": "0.3",
		"name":             pkg.Name,
		"display_name":     cmp.Or(pkg.Title, pkg.Name),
		"version":          pkg.Version,
		"description":      cmp.Or(pkg.Description, pkg.Name),
		"author":           map[string]string{"name": "unknown"},
		"server": map[string]any{
			"type":       kind,
			"mcp_config": map[string]any{"command": command.Command, "args": command.Args, "cwd": command.Dir, "env": env},
		},
		"user_config": fields,
	}
	if runtimes != nil {
		manifest["compatibility"] = map[string]any{"runtimes": runtimes}
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	return bundle.ParseManifest(raw)
}

// arguments returns a package's argument templates, with variables replaced by references to user_config. It omits
// arguments whose variables have no value.
func arguments(pkg registry.Package, env map[string]core.Secret, templates []string) []string {
	var args []string
	for _, template := range templates {
		filled, ok := pkg.Fill(template, func(v registry.Variable) (string, bool) {
			_, has := values(env)(v)
			return userConfig(v), has
		})
		if ok {
			args = append(args, filled)
		}
	}
	return args
}

func userConfig(v registry.Variable) string { return "${user_config." + v.Name + "}" }

// withDefaults returns a copy of env with the defaults of the package's variables added.
func withDefaults(pkg registry.Package, env map[string]core.Secret) map[string]core.Secret {
	all := maps.Clone(env)
	for _, v := range pkg.Variables {
		if v.Default == "" || all[v.Name] != "" {
			continue
		}
		if all == nil {
			all = map[string]core.Secret{}
		}
		all[v.Name] = core.Secret(v.Default)
	}
	return all
}
