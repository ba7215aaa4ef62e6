package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// UI returns how the app presents itself: the first vendor key of _meta, by name, that has a primaryView with a
// ui:// address. Name and icon fall back to the manifest's own. It returns nil if no key does; a tool's own
// view may then be used instead (docs/api.md 3).
func (m *Manifest) UI() *core.UI {
	for _, key := range slices.Sorted(maps.Keys(m.Meta)) {
		var ui core.UI
		if json.Unmarshal(m.Meta[key], &ui) != nil || !strings.HasPrefix(ui.PrimaryView.ResourceURI, "ui://") {
			continue
		}
		if ui.Name == "" {
			ui.Name = m.Title()
		}
		if ui.Icon == "" {
			ui.Icon = m.Icon
		}
		return &ui
	}
	return nil
}

// Title returns the name to show to people.
func (m *Manifest) Title() string {
	if m.DisplayName != "" {
		return m.DisplayName
	}
	return m.Name
}

// The app types of docs/api.md 3.1.
const (
	AppPlain  = "plain"
	AppUpjack = "upjack"
)

// Type returns AppUpjack if a vendor key of _meta declares that framework, such as "ai.nimblebrain/upjack",
// and AppPlain otherwise.
func (m *Manifest) Type() string {
	for key, value := range m.Meta {
		if text := string(value); path.Base(key) == AppUpjack && text != "null" && text != "false" {
			return AppUpjack
		}
	}
	return AppPlain
}

// maxServerName is the maximum length of server names in characters. Server names are also directory names.
const maxServerName = 128

// reservedServer is the name of the server's own tools.
const reservedServer = "system"

// ServerName returns the server name of a bundle: the last path segment of its name in lower case, with "-" for
// every character outside [a-z0-9-]. Names are never truncated. The error is core.CodeBadRequest for a name
// without a letter or digit, for "system", and for more than 128 characters.
func ServerName(bundleName string) (string, error) {
	last := bundleName[strings.LastIndexByte(bundleName, '/')+1:]
	var b strings.Builder
	letters := false
	for _, r := range strings.ToLower(last) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			letters = true
		} else {
			r = '-'
		}
		b.WriteRune(r)
	}
	name := b.String()
	switch {
	case len(name) > maxServerName:
		return "", badName(bundleName, fmt.Sprintf("would result in a server name of more than %d characters; choose one with serverName", maxServerName))
	case !letters || name == "":
		return "", badName(bundleName, "cannot be turned into a server name: it needs a letter or a digit after its last /")
	case name == reservedServer:
		return "", badName(bundleName, `would result in the server name "system", which is reserved for the server's own tools`)
	}
	return name, nil
}

func badName(bundleName, why string) error {
	return core.Errorf(core.CodeBadRequest, "%s", fmt.Sprintf("bundle name %.100q %s", bundleName, why))
}
