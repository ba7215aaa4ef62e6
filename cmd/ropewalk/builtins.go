package main

import (
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

// builtins are the adapters inside this executable, by kind and the name that the configuration
// uses. Each is also a plugin binary of its own, cmd/<kind>-<name>.
func builtins() pluginhost.Builtins {
	return pluginhost.Builtins{
		plugins.KindAuth: {
			"oidc":   func() plugins.Plugin { return auth.Plugin(oidc.New()) },
			"workos": func() plugins.Plugin { return auth.Plugin(workos.New()) },
			"static": func() plugins.Plugin { return auth.Plugin(static.New()) },
		},
		plugins.KindSessionStore: {
			"memory":   func() plugins.Plugin { return sessionstore.Plugin(memory.New()) },
			"redis":    func() plugins.Plugin { return sessionstore.Plugin(redis.New()) },
			"postgres": func() plugins.Plugin { return sessionstore.Plugin(postgres.New()) },
		},
		plugins.KindRegistry: {
			"directory":    func() plugins.Plugin { return registry.Plugin(directory.New()) },
			"mcp-registry": func() plugins.Plugin { return registry.Plugin(mcpregistry.New()) },
			"mpak":         func() plugins.Plugin { return registry.Plugin(mpak.New()) },
		},
		plugins.KindAudit: {
			"file": func() plugins.Plugin { return audit.Plugin(file.New()) },
			"http": func() plugins.Plugin { return audit.Plugin(http.New()) },
		},
	}
}
