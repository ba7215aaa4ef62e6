package main

import (
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit/file"
	"github.com/ropewalk/ropewalk/plugins/audit/http"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
	"github.com/ropewalk/ropewalk/plugins/auth/workos"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/redis"
)

// adapterSchemas tells the configuration of every built-in adapter, so that a wrong name or
// setting is found on its line before any plugin is started, and editors know them. An adapter
// whose settings are not listed here checks them alone.
func adapterSchemas() []schema.Adapter {
	settings := map[plugins.Kind]map[string]any{
		plugins.KindAuth:         {"oidc": oidc.Settings{}, "workos": workos.Settings{}, "static": static.Settings{}},
		plugins.KindSessionStore: {"redis": redis.Config{}, "postgres": postgres.Config{}},
		plugins.KindRegistry:     {"directory": directory.Settings{}, "mcp-registry": mcpregistry.Settings{}, "mpak": mpak.Settings{}},
		plugins.KindAudit:        {"file": file.Settings{}, "http": http.Settings{}},
	}
	var all []schema.Adapter
	for kind, adapters := range builtins() {
		for name := range adapters {
			if of, listed := settings[kind][name]; listed {
				all = append(all, schema.Describe(string(kind), name, of))
				continue
			}
			all = append(all, schema.Adapter{Kind: string(kind), Name: name})
		}
	}
	return all
}
