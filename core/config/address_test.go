package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestLoopbackAddressesAreRecognised(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "[::1]": true, "localhost": true, "LOCALHOST": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example.com": false, "example.com": false, "": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %v", host, got)
		}
	}
}

func TestAnExecutableIsFoundAsAShellWouldFindIt(t *testing.T) {
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

func TestTheHostEnvironmentIsTheProcessEnvironment(t *testing.T) {
	t.Setenv("ROPEWALK_TEST", "a=b")
	equal(t, "value", HostEnvironment()["ROPEWALK_TEST"], "a=b")
}
