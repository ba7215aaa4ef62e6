package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

type memoryLog struct{ bytes.Buffer }

func (*memoryLog) Close() error { return nil }

func TestSecretsAreRemovedFromAnAppsOutput(t *testing.T) {
	r := core.Installation{Manifest: json.RawMessage(`{"manifest_version":"0.3","name":"@test/notes","version":"1.0.0","description":"notes",
		"author":{"name":"test"},"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"x"}},"user_config":{
		"folder":{"type":"directory","title":"Folder","description":"where"},
		"key":{"type":"string","title":"Key","description":"of","sensitive":true}}}`)}
	r.Env = map[string]core.Secret{"folder": "/srv/files", "key": "s3cret", "OTHER": "s3cret-and-more", "SHORT": "on", "LOG_LEVEL": "ERROR"}
	r.Remote = &core.Remote{Auth: core.RemoteAuth{Token: "t0ken", Value: "v4lue"}, Headers: map[string]core.Secret{"X": "h3ader"}}
	log := &memoryLog{}
	s := NewOutput(log, NewRedactor(r))
	fmt.Fprint(s, "ERROR: open /srv/files with s3c")
	fmt.Fprint(s, "ret, s3cret-and-more, t0ken, v4lue and h3ader on\r\nno line break")
	want := "ERROR: open /srv/files with [redacted], [redacted], [redacted], [redacted] and [redacted] on"
	expect(t, "the tail", s.Tail(), want+"\nno line break")
	expect(t, "log", log.String(), want+"\nno line break\n")
}

func TestAFloodWithoutLineBreaksUsesLittleMemory(t *testing.T) {
	log := &memoryLog{}
	s := NewOutput(log, NewRedactor(core.Installation{}))
	for range 1000 {
		fmt.Fprint(s, strings.Repeat("x", 1000))
	}
	if cap(s.line) > 2*maxLine || len(s.Tail()) > tailBytes {
		t.Errorf("%d bytes of a line and %d of a tail are kept", cap(s.line), len(s.Tail()))
	}
	for i := range 100 {
		fmt.Fprintf(s, "\nline %d", i)
	}
	lines := strings.Split(s.Tail(), "\n")
	expect(t, "lines kept", len(lines), tailLines)
	expect(t, "the last one", lines[len(lines)-1], "line 99")
}

func TestALogIsRotatedWhenItIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "stderr.log")
	l, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l.maxSize, l.maxOlder = 10, 2
	for i := range 9 {
		if _, err := fmt.Fprintf(l, "line%d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again.maxSize, again.maxOlder = 12, 2
	if _, err := again.Write([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"": "line8\nlast\n", ".1": "line7\n", ".2": "line6\n"} {
		got, err := os.ReadFile(path + file)
		if err != nil || string(got) != want {
			t.Errorf("stderr.log%s contains %q (%v), want %q", file, got, err, want)
		}
	}
	if _, err := os.Stat(path + ".3"); !os.IsNotExist(err) {
		t.Error("too many old files are kept")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the mode of the file", info.Mode().Perm(), os.FileMode(0o600))
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
