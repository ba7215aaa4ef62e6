package mcpregistry_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

func resolveOne(t *testing.T, fields object) (registry.Package, error) {
	t.Helper()
	return open(t, publish(t, entry("io.example/a", "1.0.0", fields))).Resolve(t.Context(), registry.Ref{Name: "io.example/a", OS: "linux", Arch: "amd64"})
}

func TestPackagesBecomeWhatAServerCanInstall(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		fields object
		want   registry.Package
	}{
		"npm": {packages(npm(object{"runtimeHint": "npx", "runtimeArguments": []object{{"type": "positional", "value": "-y"}}, "registryBaseUrl": "https://registry.npmjs.org"})),
			registry.Package{Kind: registry.KindNPM, Identifier: "@example/server", IdentifierVersion: "4.5.6"}},
		"arguments of the runtime itself": {packages(npm(object{"runtimeHint": "node", "runtimeArguments": []object{{"type": "named", "name": "--no-warnings"}}})),
			registry.Package{Kind: registry.KindNPM, Identifier: "@example/server", IdentifierVersion: "4.5.6", RuntimeArgs: []string{"--no-warnings"}}},
		"pypi": {packages(object{"registryType": "pypi", "identifier": "example", "version": "1.2.post1"}),
			registry.Package{Kind: registry.KindPyPI, Identifier: "example", IdentifierVersion: "1.2.post1"}},
		"mcpb before npm": {packages(npm(nil), object{"registryType": "mcpb", "identifier": "https://example.com/a.mcpb", "fileSha256": strings.ToUpper(digest)}),
			registry.Package{Kind: registry.KindMCPB, Artifact: "io.example/a@1.0.0", SHA256: digest}},
		"npm if the mcpb has no digest": {packages(npm(nil), object{"registryType": "mcpb", "identifier": "https://example.com/a.mcpb"}),
			registry.Package{Kind: registry.KindNPM, Identifier: "@example/server", IdentifierVersion: "4.5.6"}},
		"arguments of every form": {packages(npm(object{"packageArguments": []object{
			{"type": "positional", "value": "serve"},
			{"type": "named", "name": "--verbose"},
			{"type": "named", "name": "--port", "value": "80"},
			{"type": "named", "name": "--api-key", "isRequired": true, "isSecret": true, "description": "the key"},
			{"type": "named", "name": "--level", "default": "low", "choices": []string{"low", "high"}},
			{"type": "positional", "valueHint": "target_dir", "isRequired": true},
			{"type": "named", "name": "--url", "value": "https://{host}/x", "variables": object{"host": object{"isRequired": true}}},
		}})), registry.Package{Kind: registry.KindNPM, Identifier: "@example/server", IdentifierVersion: "4.5.6",
			Args: []string{"serve", "--verbose", "--port=80", "--api-key={api_key}", "--level={level}", "{target_dir}", "--url=https://{host}/x"},
			Variables: []registry.Variable{
				{Name: "api_key", Description: "the key", Required: true, Secret: true}, {Name: "level", Default: "low", Choices: []string{"low", "high"}},
				{Name: "target_dir", Required: true}, {Name: "host", Required: true},
			}}},
		"environment variables": {packages(npm(object{"environmentVariables": []object{
			{"name": "KEY", "description": "k", "isRequired": true, "isSecret": true}, {"name": "MODE", "value": "prod"}, {"name": "REGION", "default": "eu"},
			{"name": "AUTH", "value": "Bearer {token}", "variables": object{"token": object{"isRequired": true, "isSecret": true}}},
		}})), registry.Package{Kind: registry.KindNPM, Identifier: "@example/server", IdentifierVersion: "4.5.6", Variables: []registry.Variable{
			{Name: "KEY", Description: "k", Required: true, Secret: true}, {Name: "MODE", Default: "prod"}, {Name: "REGION", Default: "eu"},
			{Name: "AUTH", Description: "(of the form Bearer {token})", Required: true, Secret: true},
		}}},
		"a remote with everything": {object{"remotes": []object{{"type": "sse", "url": "https://{tenant}.example.com/sse", "variables": object{"tenant": object{"isRequired": true, "default": "main"}},
			"headers": []object{{"name": "X-Key", "isRequired": true, "isSecret": true}, {"name": "Authorization", "value": "Bearer {token}", "variables": object{"token": object{"isSecret": true}}}}}}},
			registry.Package{Kind: registry.KindRemote,
				Remote:    registry.Remote{Transport: "sse", URL: "https://{tenant}.example.com/sse", Headers: map[string]string{"X-Key": "{X-Key}", "Authorization": "Bearer {token}"}},
				Variables: []registry.Variable{{Name: "tenant", Default: "main", Required: true}, {Name: "X-Key", Required: true, Secret: true}, {Name: "token", Secret: true}}}},
		"a remote if no package can be installed": {object{"packages": []object{{"registryType": "oci", "identifier": "x"}}, "remotes": []object{{"type": "streamable-http", "url": "https://example.com"}}},
			registry.Package{Kind: registry.KindRemote, Remote: registry.Remote{Transport: "streamable-http", URL: "https://example.com"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name, c.want.Version, c.want.Title, c.want.Description = "io.example/a", "1.0.0", "Title", "about io.example/a"
			if got, err := resolveOne(t, c.fields); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestTheErrorSaysWhyAnEntryCannotBeInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		fields object
		want   string
	}{
		"nothing":     {nil, "it has no package and no remote"},
		"a container": {packages(object{"registryType": "oci"}), "oci packages cannot be installed"},
		"a range":     {packages(npm(object{"version": "^1.0.0"})), `npm has the version "^1.0.0"`},
		"part of a version, which npm treats as a range": {packages(npm(object{"version": "1.2"})), `npm has the version "1.2"`},
		"a tag":                             {packages(npm(object{"version": "latest"})), `npm has the version "latest"`},
		"no version":                        {packages(npm(object{"version": ""})), `npm has the version ""`},
		"a package that is a server itself": {packages(npm(object{"transport": object{"type": "sse", "url": "http://localhost:8080"}})), "npm uses sse, not stdio"},
		"another package registry":          {packages(npm(object{"registryBaseUrl": "https://npm.evil.example"})), "npm is in a separate package registry"},
		"an mcpb without a digest":          {packages(object{"registryType": "mcpb", "identifier": "https://x/y.mcpb"}), "mcpb has no fileSha256"},
		"a remote of another kind":          {object{"remotes": []object{{"type": "websocket", "url": "wss://x"}}}, `a remote of type "websocket"`},
		"a pypi package on npmjs":           {packages(object{"registryType": "pypi", "identifier": "x", "version": "1", "registryBaseUrl": "https://registry.npmjs.org"}), "pypi is in"},
		"several, each with its reason":     {packages(npm(object{"version": "*"}), object{"registryType": "nuget"}), `npm has the version "*", which is not exact; nuget packages`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := resolveOne(t, c.fields); !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAVariableThatIsUsedTwiceIsSecretAndRequiredIfOneUseIs(t *testing.T) {
	for _, uses := range [][]object{
		{{"type": "named", "name": "--key", "isSecret": true, "default": "x"}, {"type": "named", "name": "--key", "isRequired": true}},
		{{"type": "named", "name": "--key", "isRequired": true}, {"type": "named", "name": "--key", "isSecret": true, "default": "x"}},
	} {
		pkg, err := resolveOne(t, packages(npm(object{"packageArguments": append(uses, object{"type": "named", "name": "--key", "default": "x"})})))
		if err != nil || len(pkg.Variables) != 1 || !pkg.Variables[0].Secret || !pkg.Variables[0].Required {
			t.Errorf("%v: got %+v, %v", uses, pkg.Variables, err)
		}
	}
}
