package logs

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// minSecret is the minimum length in bytes of a value that is redacted. A shorter value would match too much ordinary
// text, and is too short to protect anything.
const minSecret = 4

// Redactor removes the secrets of one installation from text.
type Redactor struct{ replacer *strings.Replacer }

// NewRedactor returns a Redactor for the secrets of an installation. These are all values in Env, except those that the
// manifest declares without marking them as sensitive, and words that many programs use as settings. For a remote app,
// they also include the credentials, the headers, and the parts of the address that may be secret.
func NewRedactor(record core.Installation) Redactor {
	var fields map[string]bundle.Field
	if m, err := bundle.ParseManifest(record.Manifest); err == nil {
		fields = m.UserConfig
	}
	var secrets []string
	add := func(values ...core.Secret) {
		for _, s := range values {
			if v := s.Reveal(); len(v) >= minSecret && !isSetting(v) {
				secrets = append(secrets, v)
			}
		}
	}
	for name, value := range record.Env {
		if f, declared := fields[name]; !declared || f.Sensitive {
			add(value)
		}
	}
	if record.Remote != nil {
		add(record.Remote.Auth.Token, record.Remote.Auth.Value)
		add(inAddress(record.Remote.URL)...)
		for _, value := range record.Remote.Headers {
			add(value)
		}
	}
	// Longest first, because one secret may contain another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "[redacted]")
	}
	return Redactor{strings.NewReplacer(pairs...)}
}

// isSetting reports whether a value is a word that many programs use as a setting, such as a log level. Such words are
// not secrets, and programs print them all the time.
func isSetting(value string) bool {
	switch strings.ToLower(value) {
	case "true", "false", "none", "null", "auto", "enabled", "disabled",
		"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "silent", "verbose",
		"production", "development", "staging", "localhost",
		"stdio", "http", "https", "json", "text", "utf-8":
		return true
	}
	return false
}

// inAddress returns the parts of an address that may be secret: the query, the values in it, and the fragment, each as
// written and unescaped.
func inAddress(address string) (all []core.Secret) {
	rest, fragment, _ := strings.Cut(address, "#")
	_, query, _ := strings.Cut(rest, "?")
	parts := []string{query, fragment}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		_, value, named := strings.Cut(pair, "=")
		if !named {
			value = pair
		}
		parts = append(parts, value)
	}
	for _, part := range parts {
		all = append(all, core.Secret(part))
		if unescaped, err := url.QueryUnescape(part); err == nil && unescaped != part {
			all = append(all, core.Secret(unescaped))
		}
	}
	return all
}

// Text returns s with each secret replaced by [redacted].
func (r Redactor) Text(s string) string { return r.replacer.Replace(s) }
