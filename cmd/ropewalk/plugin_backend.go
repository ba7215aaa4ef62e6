package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// noBackend is the value of --backend for a plugin that uses no other process.
const noBackend = "none"

// backendPlaceholder stands for the address of the kit's proxy in front of a backend, in settings.
const backendPlaceholder = "${backend}"

// proxied is the proxy in front of the plugin's backend, if one was requested.
type proxied struct{ *kit.Proxy }

func (p proxied) Close() {
	if p.Proxy != nil {
		p.Proxy.Close()
	}
}

// hasBackend reports whether the kit was given the address of the plugin's backend.
func (t *trial) hasBackend() bool { return t.backend != "" && t.backend != noBackend }

// checkBackend returns an error if only one of the settings and --backend is about a backend.
func (t *trial) checkBackend() error {
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(t.settings.JSON(), &settings); err != nil {
		return err
	}
	named := ""
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if named == "" && bytes.Contains(settings[name], []byte(backendPlaceholder)) {
			named = name
		}
	}
	switch {
	case named != "" && !t.hasBackend():
		return fmt.Errorf("%s: %q contains %s; pass the backend's address as --backend HOST:PORT", t.settingsFile, named, backendPlaceholder)
	case named == "" && t.hasBackend():
		return fmt.Errorf("--backend %s: put %s in the settings in place of that address", t.backend, backendPlaceholder)
	}
	return nil
}

// withBackend starts a proxy in front of --backend and puts its address in the settings.
func (t *trial) withBackend() (json.RawMessage, proxied, error) {
	settings := t.settings.JSON()
	if !t.hasBackend() {
		return settings, proxied{}, nil
	}
	proxy, err := kit.NewProxy(t.backend)
	if err != nil {
		return nil, proxied{}, err
	}
	return bytes.ReplaceAll(settings, []byte(backendPlaceholder), []byte(proxy.Address())), proxied{proxy}, nil
}
