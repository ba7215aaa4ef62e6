package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core/config/layer"
)

// defaultRecheck is how long a login is trusted before it is checked with the provider again.
const defaultRecheck = 5 * time.Minute

// authSection is one mapping under auth.
type authSection struct {
	at   string // its path
	keys map[string]any
}

// authSections returns the mappings of auth, which is one mapping or a list of them.
func (d document) authSections() []authSection {
	switch v := d.Auth.(type) {
	case map[string]any:
		return []authSection{{"auth", v}}
	case []any:
		var all []authSection
		for i, item := range v {
			keys, _ := item.(map[string]any)
			all = append(all, authSection{fmt.Sprintf("auth[%d]", i), keys})
		}
		return all
	}
	return nil
}

func (s authSection) auth(base string) Auth {
	a := Auth{
		Plugin: plugin("auth", s.at, s.keys, base), ClientID: text(s.keys, "clientId"), RedirectURI: text(s.keys, "redirectUri"),
		Admins: stringList(s.keys["admins"]), Join: joinRules(s.keys["join"]), Scopes: stringList(s.keys["scopes"]), SameAs: stringList(s.keys["sameAs"]),
	}
	a.Audiences, a.AnyAudience = audiences(s.keys["audience"])
	a.Recheck = defaultRecheck
	if n, ok := s.keys["recheckSeconds"].(json.Number); ok {
		if whole, err := n.Int64(); err == nil {
			a.Recheck = time.Duration(whole) * time.Second
		}
	}
	return a
}

func (k *check) checkAuth() {
	var all []Plugin
	var sections []any
	for i, section := range k.doc.authSections() {
		a := &k.cfg.Auth[i]
		k.checkAuthSection(a, section)
		all, sections = append(all, a.Plugin), append(sections, section.keys)
	}
	k.checkPlugins("auth", all, sections)
}

func (k *check) checkAuthSection(a *Auth, section authSection) {
	at := func(key string) string { return layer.Join(section.at, key) }
	if a.Adapter == "workos" {
		if section.keys["idpDomain"] == nil && section.keys["issuer"] == nil { // issuer: an AuthKit with its own domain
			k.add(at("idpDomain"), "is required: enabling OAuth requires idpDomain, the subdomain part of the identity provider's URL")
		}
		if key := k.cfg.Environment[EnvWorkOSKey]; key != "" {
			a.Settings = a.Settings.with("apiKey", key)
		}
	}
	if a.RedirectURI != "" {
		if _, err := webAddress(a.RedirectURI); err != nil || !strings.HasSuffix(a.RedirectURI, callbackPath) {
			k.add(at("redirectUri"), "must be an address of the form <base URL>%s", callbackPath)
		}
	}
	for i, entry := range a.Admins {
		path := layer.Join(section.at, fmt.Sprintf("admins[%d]", i))
		switch kind, name, _ := strings.Cut(entry, ":"); {
		case kind == "email" && !strings.Contains(name, "@"), (kind == "group" || kind == "subject") && name == "":
			k.add(path, "must be email:ADDRESS, group:NAME or subject:NAME")
		case !slices.Contains([]string{"email", "group", "subject"}, kind) && !strings.Contains(entry, "@"):
			k.warn("%s: %s could be a subject or a group; write subject:NAME or group:NAME", path, k.shown(path, entry))
		}
	}
	for i, j := range a.Join {
		if slices.ContainsFunc(a.Join[:i], func(earlier Join) bool {
			return earlier.Group == j.Group && (j.Group == "" || earlier.Workspace == j.Workspace)
		}) {
			k.add(layer.Join(section.at, fmt.Sprintf("join[%d]", i)), "repeats an earlier entry; use one entry without a group, and one for each group and workspace")
		}
	}
	if a.AnyAudience {
		k.warn("%s is any, so tokens that were issued for other services are accepted", at("audience"))
	}
}
