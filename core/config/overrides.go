package config

import (
	"encoding/json"
	"strconv"
	"strings"
)

// environmentLayer holds what environment variables set. An empty variable counts as unset.
func environmentLayer(env Environment) *layer {
	l := newLayer()
	if key := env[EnvAPIKey]; key != "" {
		l.set("apiKey", key, "environment "+EnvAPIKey)
	}
	if list := strings.TrimSpace(env[EnvAllowedOrigins]); list != "" {
		origins := []any{}
		for origin := range strings.SplitSeq(list, ",") {
			if origin = strings.TrimSpace(origin); origin != "" {
				origins = append(origins, origin)
			}
		}
		l.set("http.allowedOrigins", origins, "environment "+EnvAllowedOrigins)
	}
	if url := env[EnvStorageURL]; url != "" {
		l.set("storage.url", url, "environment "+EnvStorageURL)
	}
	if n := env[EnvMaxSessions]; n != "" {
		l.set("mcp.maxSessions", number(n), "environment "+EnvMaxSessions)
	}
	if n := env[EnvSessionTTL]; n != "" {
		l.set("mcp.sessionTtlSeconds", number(n), "environment "+EnvSessionTTL)
	}
	return l
}

// flagLayer holds what the command line set.
func flagLayer(f Flags) *layer {
	l := newLayer()
	if f.Host != nil {
		l.set("http.host", *f.Host, "flag --host")
	}
	if f.Port != nil {
		l.set("http.port", json.Number(strconv.Itoa(*f.Port)), "flag --port")
	}
	return l
}

// set puts a value at a path of one or two steps.
func (l *layer) set(path string, value any, source string) {
	l.places[path] = Place{Source: source}
	l.expanded[path] = true
	section, key, nested := strings.Cut(path, ".")
	if !nested {
		l.value[section] = value
		return
	}
	in, _ := l.value[section].(map[string]any)
	if in == nil {
		in = map[string]any{}
		l.value[section] = in
	}
	in[key] = value
}

// over lays l over below: mappings are merged, everything else is replaced.
func (l *layer) over(below *layer) *layer {
	out := newLayer()
	for _, from := range []*layer{below, l} {
		for path, place := range from.places {
			out.places[path] = place
		}
		for path, expanded := range from.expanded {
			out.expanded[path] = expanded
		}
		out.problems = append(out.problems, from.problems...)
	}
	out.value = merge(below.value, l.value)
	return out
}

func merge(below, above map[string]any) map[string]any {
	out := make(map[string]any, len(below)+len(above))
	for k, v := range below {
		out[k] = v
	}
	for k, v := range above {
		upper, isMap := v.(map[string]any)
		lower, wasMap := out[k].(map[string]any)
		if isMap && wasMap {
			out[k] = merge(lower, upper)
			continue
		}
		out[k] = v
	}
	return out
}
