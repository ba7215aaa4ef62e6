package main

import (
	"bytes"
	"encoding/json"
	"fmt"

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

// withBackend starts a proxy in front of --backend and puts its address in the settings.
func (t *trial) withBackend() (json.RawMessage, proxied, error) {
	settings := t.settings.JSON()
	if t.backend == "" || t.backend == noBackend {
		return settings, proxied{}, nil
	}
	if !bytes.Contains(settings, []byte(backendPlaceholder)) {
		return nil, proxied{}, fmt.Errorf("--backend %s: put %s in the settings in place of that address", t.backend, backendPlaceholder)
	}
	proxy, err := kit.NewProxy(t.backend)
	if err != nil {
		return nil, proxied{}, err
	}
	return bytes.ReplaceAll(settings, []byte(backendPlaceholder), []byte(proxy.Address())), proxied{proxy}, nil
}
