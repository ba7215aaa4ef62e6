package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestTheAudiencesAreTheAddressesAndTheClientID(t *testing.T) {
	cases := []struct {
		name, file string
		want       []string
	}{
		{"a public address", "http: {baseUrl: 'https://t.example/x/'}\nauth: {adapter: x, clientId: me, audience: [more]}",
			[]string{"https://t.example/x", "https://t.example/x/", "https://t.example/x/mcp", "me", "more"}},
		{"the address listened on", "http: {allowedHosts: [a.b]}", []string{
			"http://127.0.0.1:5", "http://127.0.0.1:5/", "http://127.0.0.1:5/mcp", "http://localhost:5", "http://localhost:5/", "http://localhost:5/mcp",
			"https://a.b", "https://a.b/", "https://a.b/mcp", "http://a.b", "http://a.b/", "http://a.b/mcp",
		}},
		{"every address", "http: {host: '::'}\napiKey: a-good-long-key-1234", []string{
			"http://127.0.0.1:5", "http://127.0.0.1:5/", "http://127.0.0.1:5/mcp", "http://localhost:5", "http://localhost:5/", "http://localhost:5/mcp",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { equal(t, c.name, mustLoad(t, c.file, nil).Audiences(5), c.want) })
	}
}

func TestWhatIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "[::1]": true, "localhost": true, "LOCALHOST": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example.com": false, "example.com": false, "": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %v", host, got)
		}
	}
}

func TestAnExecutableIsFoundAsAShellWould(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	node, plain := filepath.Join(dir, "node"), filepath.Join(dir, "plain")
	if err := errors.Join(os.WriteFile(node, nil, 0o700), os.WriteFile(plain, nil, 0o600), os.Mkdir(filepath.Join(empty, "node"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	e := Environment{"PATH": empty + ":.:" + dir}
	for file, want := range map[string]string{"node": node, node: node, "plain": "", "missing": "", plain: ""} {
		got, err := e.LookPath(file)
		if (err == nil) != (want != "") || (want != "" && got != want) {
			t.Errorf("LookPath(%q) = %q, %v", file, got, err)
		}
	}
	if _, err := (Environment{"PATH": "."}).LookPath("node"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a relative directory of PATH was searched: %v", err)
	}
	equal(t, "only", e.Only("PATH", "NOPE"), Environment{"PATH": e["PATH"]})
}

func TestTheHostEnvironmentIsThatOfTheProcess(t *testing.T) {
	t.Setenv("ROPEWALK_TEST", "a=b")
	equal(t, "value", HostEnvironment()["ROPEWALK_TEST"], "a=b")
}
