package app

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func TestTheFieldsOfAnAppAreShownOnePerLine(t *testing.T) {
	t.Parallel()
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(`{"version": "1.0.0", "env": ["KEY", "OTHER"], "lastError": null, "ui": [],
		"signature": {"signer": "Example", "trusted": false}, "memoryBytes": 8052736, "name": "notes", "toolCount": 4,
		"lastOutput": ["a", "b"], "description": "", "setting.apiKey": "set", "source": {"ref": "/x", "deep": {"er": [{"n": 1}]}}}`), &fields)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printFields(cli.NewOutput(&out), fields); err != nil {
		t.Fatal(err)
	}
	want := `name               notes
version            1.0.0
last output        a
                   b
memory             7.7 MiB
tool count         4
env                KEY
                   OTHER
setting apiKey     set
signature signer   Example
signature trusted  false
source deep er     {"n": 1}
source ref         /x
`
	if out.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestAnAppIsDescribedInPlainText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, want string }{
		{`{"name": "notes", "type": "plain", "trustScore": 0, "protected": false, "instances": 0, "env": [], "ui": null, "userConfig": {},
			"source": {"kind": "path", "ref": "/x"}, "sandbox": {"level": "namespaces", "network": ["loopback-off"], "ownUser": false,
				"limits": {"memoryMiB": 2097152, "processes": 256, "openFiles": 1024, "fileSizeMiB": 0, "cpu": 1.5}, "cgroup": ["cpu", "memory"]}}`, `name     notes
source   the path /x
limits   2097152 MiB of memory, 256 processes, 1.5 processors, 1024 open files (cpu and memory enforced by the kernel)
network  other machines, but no services on this one
sandbox  namespaces: its own files, processes and network
`},
		{`{"name": "notes", "type": "upjack", "trustScore": 80, "protected": true, "instances": 2, "env": ["KEY", "OTHER"],
			"ui": {"name": "N", "icon": "x", "primaryView": {"resourceUri": "ui://notes/all"}},
			"userConfig": {"token": {"type": "string", "title": "Token", "required": true, "sensitive": true, "isSet": true}, "dir": {"title": "Folder", "description": "where"}},
			"source": {"kind": "name", "ref": "@a/notes", "registry": "ours"},
			"sandbox": {"level": "landlock", "network": ["a.example:443", "b.example"], "ownUser": true, "weaker": "no namespaces"}}`, `name           notes
source         @a/notes from the registry "ours"
trust          80 of 100, according to the registry
environment    KEY, OTHER (values are not shown)
framework      upjack
instances      2 in addition to the shared one
network        a.example:443, b.example
protected      it cannot be uninstalled, because the configuration protects it
sandbox        landlock: some files and system calls only, its own user ID (weaker than configured: no namespaces)
setting dir    not set: where
setting token  set, required, secret: Token
view           ui://notes/all
`},
	} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.answer), &fields); err != nil {
			t.Fatal(err)
		}
		inWords(fields)
		var out bytes.Buffer
		if err := printFields(cli.NewOutput(&out), fields); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("shown:\n%s\nwant:\n%s", out.String(), c.want)
		}
	}
}
