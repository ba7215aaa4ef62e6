package config

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core/config/layer"
)

// environmentLayer returns the settings from environment variables. An empty variable is treated as unset.
func environmentLayer(env Environment) *layer.Layer {
	l := layer.New()
	if key := env[EnvAPIKey]; key != "" {
		l.Set("apiKey", key, "environment "+EnvAPIKey)
	}
	if list := strings.TrimSpace(env[EnvAllowedOrigins]); list != "" {
		origins := []any{}
		for origin := range strings.SplitSeq(list, ",") {
			if origin = strings.TrimSpace(origin); origin != "" {
				origins = append(origins, origin)
			}
		}
		l.Set("http.allowedOrigins", origins, "environment "+EnvAllowedOrigins)
	}
	if url := env[EnvStorageURL]; url != "" {
		l.Set("storage.url", url, "environment "+EnvStorageURL)
	}
	if key := env[EnvStorageKey]; key != "" {
		l.Set("storage.key", key, "environment "+EnvStorageKey)
	}
	if n := env[EnvMaxSessions]; n != "" {
		l.Set("mcp.maxSessions", layer.Number(n), "environment "+EnvMaxSessions)
	}
	if n := env[EnvSessionTTL]; n != "" {
		l.Set("mcp.sessionTtlSeconds", layer.Number(n), "environment "+EnvSessionTTL)
	}
	return l
}

// flagLayer returns the settings from the command line.
func flagLayer(f Flags) *layer.Layer {
	l := layer.New()
	if f.Host != nil {
		l.Set("http.host", *f.Host, "flag --host")
	}
	if f.Port != nil {
		l.Set("http.port", json.Number(strconv.Itoa(*f.Port)), "flag --port")
	}
	return l
}
