package main

import (
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

// adapter is an adapter inside this executable.
type adapter struct {
	new func() plugins.Plugin

	// settings is the zero value of the adapter's settings type. The configuration's schema is derived from it. It is
	// nil if only the adapter checks its settings.
	settings any
}

// adapters returns the adapters inside this executable, by kind and by the name used in the configuration. Each
// is also a separate plugin binary, cmd/<kind>-<name>.
func adapters() map[plugins.Kind]map[string]adapter {
	return map[plugins.Kind]map[string]adapter{
		plugins.KindAuth: {
			"oidc":   {func() plugins.Plugin { return auth.Plugin(oidc.New()) }, oidc.Settings{}},
			"workos": {func() plugins.Plugin { return auth.Plugin(workos.New()) }, workos.Settings{}},
			"static": {func() plugins.Plugin { return auth.Plugin(static.New()) }, static.Settings{}},
		},
		plugins.KindSessionStore: {
			"memory":   {func() plugins.Plugin { return sessionstore.Plugin(memory.New()) }, nil},
			"redis":    {func() plugins.Plugin { return sessionstore.Plugin(redis.New()) }, redis.Config{}},
			"postgres": {func() plugins.Plugin { return sessionstore.Plugin(postgres.New()) }, postgres.Config{}},
		},
		plugins.KindRegistry: {
			"directory":    {func() plugins.Plugin { return registry.Plugin(directory.New()) }, directory.Settings{}},
			"mcp-registry": {func() plugins.Plugin { return registry.Plugin(mcpregistry.New()) }, mcpregistry.Settings{}},
			"mpak":         {func() plugins.Plugin { return registry.Plugin(mpak.New()) }, mpak.Settings{}},
		},
		plugins.KindAudit: {
			"file": {func() plugins.Plugin { return audit.Plugin(file.New()) }, file.Settings{}},
			"http": {func() plugins.Plugin { return audit.Plugin(http.New()) }, http.Settings{}},
		},
	}
}

// builtins returns the adapters for the plugin host.
func builtins() pluginhost.Builtins {
	all := pluginhost.Builtins{}
	for kind, of := range adapters() {
		all[kind] = map[string]func() plugins.Plugin{}
		for name, a := range of {
			all[kind][name] = func() plugins.Plugin {
				p := a.new()
				p.Version = version // a release is not built from its module, so the module has no version
				return p
			}
		}
	}
	return all
}

// adapterSchemas describes every built-in adapter for the configuration, so that a wrong name or setting is reported
// with its line before any plugin starts, and so that editors can complete them.
func adapterSchemas() []schema.Adapter {
	var all []schema.Adapter
	for kind, of := range adapters() {
		for name, a := range of {
			if a.settings == nil {
				all = append(all, schema.Adapter{Kind: string(kind), Name: name})
				continue
			}
			all = append(all, schema.Describe(string(kind), name, a.settings))
		}
	}
	return all
}
