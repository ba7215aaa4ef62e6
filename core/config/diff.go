package config

import "reflect"

// Diff names the sections in which two configurations differ, as the file names them: home, http,
// apiKey, auth, sessionStore, storage, registries, features, apps, mcp, chat, models, skills, limits, log, sandbox, audit, tools, install,
// plugins. A reload
// applies what it can and says of the rest that it takes a new start. The environment and the places count as nothing.
func Diff(before, after *Config) []string {
	var names []string
	differ := func(name string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			names = append(names, name)
		}
	}
	differ("home", before.Home, after.Home)
	differ("http", [...]any{before.HTTP, before.AllowedOrigins}, [...]any{after.HTTP, after.AllowedOrigins})
	differ("apiKey", before.APIKey, after.APIKey)
	differ("auth", before.Auth, after.Auth)
	differ("sessionStore", before.SessionStore, after.SessionStore)
	differ("storage", before.Storage, after.Storage)
	differ("registries", before.Registries, after.Registries)
	differ("features", before.Features, after.Features)
	differ("apps", before.Apps, after.Apps)
	differ("mcp", before.MCP, after.MCP)
	differ("chat", before.Chat, after.Chat)
	differ("models", before.Models, after.Models)
	differ("skills", before.Skills, after.Skills)
	differ("limits", before.Limits, after.Limits)
	differ("log", before.Log, after.Log)
	differ("sandbox", before.Sandbox, after.Sandbox)
	differ("audit", before.Audit, after.Audit)
	differ("tools", before.Tools, after.Tools)
	differ("install", before.Install, after.Install)
	differ("plugins", before.Plugins, after.Plugins)
	return names
}
