package mcpregistry

import "encoding/json"

// The API's responses, reduced to the fields used here.
type (
	list struct {
		Servers  []listing `json:"servers"`
		Metadata struct {
			NextCursor string `json:"nextCursor"`
		} `json:"metadata"`
	}

	listing struct {
		Server server                     `json:"server"`
		Meta   map[string]json.RawMessage `json:"_meta"`
	}

	server struct {
		Name        string   `json:"name"`
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Version     string   `json:"version"`
		Packages    []pack   `json:"packages"`
		Remotes     []remote `json:"remotes"`
	}

	pack struct {
		RegistryType         string     `json:"registryType"`
		RegistryBaseURL      string     `json:"registryBaseUrl"`
		Identifier           string     `json:"identifier"`
		Version              string     `json:"version"`
		FileSHA256           string     `json:"fileSha256"`
		RuntimeHint          string     `json:"runtimeHint"`
		Transport            remote     `json:"transport"`
		RuntimeArguments     []argument `json:"runtimeArguments"`
		PackageArguments     []argument `json:"packageArguments"`
		EnvironmentVariables []keyInput `json:"environmentVariables"`
	}

	remote struct {
		Type      string           `json:"type"`
		URL       string           `json:"url"`
		Headers   []keyInput       `json:"headers"`
		Variables map[string]input `json:"variables"`
	}

	// input is a value that is fixed, has a default, or must be supplied. {name} in a value stands for one of its own
	// variables.
	input struct {
		Description string           `json:"description"`
		Value       string           `json:"value"`
		Default     string           `json:"default"`
		Choices     []string         `json:"choices"`
		IsRequired  bool             `json:"isRequired"`
		IsSecret    bool             `json:"isSecret"`
		Variables   map[string]input `json:"variables"`
	}

	keyInput struct {
		input
		Name string `json:"name"`
	}

	argument struct {
		input
		Type      string `json:"type"` // positional or named
		Name      string `json:"name"`
		ValueHint string `json:"valueHint"`
	}
)

const officialMeta = "io.modelcontextprotocol.registry/official"

// status returns active, deprecated or deleted. The default is active.
func (l listing) status() string {
	var meta struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(l.Meta[officialMeta], &meta) != nil || meta.Status == "" {
		return statusActive
	}
	return meta.Status
}

const (
	statusActive     = "active"
	statusDeprecated = "deprecated"
	statusDeleted    = "deleted"
)

// description returns the entry's description, marked if the entry is deprecated, because no other field of a search
// result can show that.
func (l listing) description() string {
	if l.status() == statusDeprecated {
		return "(deprecated) " + l.Server.Description
	}
	return l.Server.Description
}

// trust returns the score that a subregistry adds to an entry under its own key, as trustScore or
// trust_score, or 0 if there is none.
func (l listing) trust() int {
	best := 0.0
	for key, raw := range l.Meta {
		var meta struct {
			Camel float64 `json:"trustScore"`
			Snake float64 `json:"trust_score"`
		}
		if key != officialMeta && json.Unmarshal(raw, &meta) == nil {
			best = max(best, meta.Camel, meta.Snake)
		}
	}
	return int(min(best, 100))
}
