package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/layer"
)

var serverName = regexp.MustCompile(`^[a-z0-9-]+$`)

// checkApps checks the addresses and headers of the declared apps, and that their settings can be combined.
func (k *check) checkApps() {
	for _, name := range slices.Sorted(maps.Keys(k.doc.Apps.named)) {
		section := k.doc.Apps.named[name]
		at := layer.Join("apps", name)
		if !serverName.MatchString(name) {
			k.add(at, "must be a server name of lower-case letters, digits and hyphens")
		}
		if name == "system" {
			k.add(at, "\"system\" is reserved for the server's own tools; choose another name")
		}
		if section.URL != "" {
			if _, err := webAddress(section.URL); err != nil {
				k.add(at+".url", "%v", err)
			}
			if len(section.Env) > 0 {
				k.add(at+".env", "a remote server runs no process here that could use environment variables; use transport.headers or transport.auth")
			}
		}
		for variable := range section.Env {
			if variable == "" || strings.ContainsAny(variable, "=\x00") {
				k.add(layer.Join(at+".env", variable), "is not a valid name for an environment variable")
			}
		}
		if section.Sandbox != nil {
			k.checkSandbox(at+".sandbox", section.Sandbox)
		}
		if section.Transport != nil {
			k.checkTransport(at+".transport", section.Transport)
		}
	}
}

func (k *check) checkTransport(at string, t *transportSection) {
	for name, value := range t.Headers {
		if (core.RemoteAuth{Type: t.Auth.Type}).Replaces(name) {
			k.addUnless(layer.Join(at+".headers", name), []string{at + ".auth.type"}, "would replace the credentials of the call's account; omit it, or use the type bearer or header")
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			k.add(layer.Join(at+".headers", name), "is not a valid HTTP header")
		}
	}
	auth := t.Auth
	if auth.Type != "" && auth.Type != "bearer" && auth.Token != "" {
		k.addUnless(at+".auth.token", []string{at + ".auth.type"}, "is used only with the type bearer")
	}
	if auth.Type != "" && auth.Type != "header" && auth.Name+auth.Value != "" {
		k.addUnless(at+".auth.name", []string{at + ".auth.type"}, "name and value are used only with the type header")
	}
	if auth.Type != "" && !(core.RemoteAuth{Type: auth.Type}).UsesAccounts() && auth.ClientID+auth.ClientSecret+strings.Join(auth.Scopes, "") != "" {
		k.addUnless(at+".auth.clientId", []string{at + ".auth.type"}, "clientId, clientSecret and scopes are used only with the types user, shared and exchange")
	}
	if auth.Type != "" && auth.Type != core.AuthExchange && auth.TokenURL+auth.Audience != "" {
		k.addUnless(at+".auth.tokenUrl", []string{at + ".auth.type"}, "tokenUrl and audience are used only with the type exchange")
	}
	if u, err := url.Parse(auth.TokenURL); auth.TokenURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "") {
		k.add(at+".auth.tokenUrl", "must be an absolute address that starts with https:// or http://, without a user name")
	}
	if auth.Type != "" && !(core.RemoteAuth{Type: auth.Type}).LinksAccounts() && auth.Issuer != "" {
		k.addUnless(at+".auth.issuer", []string{at + ".auth.type"}, "is used only with the types user and shared")
	}
	if auth.Issuer != "" && auth.ClientID == "" {
		k.addUnless(at+".auth.issuer", []string{at + ".auth.type"}, "requires clientId")
	}
	if auth.ClientSecret != "" && auth.ClientID == "" {
		k.addUnless(at+".auth.clientSecret", []string{at + ".auth.type"}, "requires clientId")
	}
	if auth.Name != "" && !httpguts.ValidHeaderFieldName(auth.Name) {
		k.add(at+".auth.name", "is not a valid HTTP header name")
	}
	if !httpguts.ValidHeaderFieldValue(auth.Value) {
		k.add(at+".auth.value", "is not a valid HTTP header value")
	}
	if !httpguts.ValidHeaderFieldValue(auth.Token) {
		k.add(at+".auth.token", "is not a valid HTTP header value")
	}
}
