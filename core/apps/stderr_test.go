package apps

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestSecretsAreTakenOutOfWhatAnAppSays(t *testing.T) {
	r := record("notes", true)
	r.Manifest = json.RawMessage(manifest(t, "@test/notes", modeNormal, map[string]any{"user_config": map[string]any{
		"folder": map[string]any{"type": "directory", "title": "Folder", "description": "where"},
		"key":    map[string]any{"type": "string", "title": "Key", "description": "of", "sensitive": true},
	}}))
	r.Env = map[string]core.Secret{"folder": "/srv/files", "key": "s3cret", "OTHER": "s3cret-and-more", "SHORT": "on"}
	r.Remote = &core.Remote{Auth: core.RemoteAuth{Token: "t0ken", Value: "v4lue"}, Headers: map[string]core.Secret{"X": "h3ader"}}
	log := &testkit.Log{}
	s := newStderr(log, newRedactor(r))
	fmt.Fprint(s, "open /srv/files with s3c")
	fmt.Fprint(s, "ret, s3cret-and-more, t0ken, v4lue and h3ader on\r\nno line break")
	want := "open /srv/files with [redacted], [redacted], [redacted], [redacted] and [redacted] on"
	expect(t, "last words", s.last(), want+"\nno line break")
	expect(t, "log", log.String(), want+"\nno line break\n")
}

func TestAFloodWithoutLineBreaksTakesLittleMemory(t *testing.T) {
	log := &testkit.Log{}
	s := newStderr(log, newRedactor(record("notes", true)))
	for range 1000 {
		fmt.Fprint(s, strings.Repeat("x", 1000))
	}
	if cap(s.line) > 2*lineLimit || len(s.last()) > tailBytes {
		t.Errorf("%d bytes of a line and %d of a tail are held", cap(s.line), len(s.last()))
	}
	for i := range 100 {
		fmt.Fprintf(s, "\nline %d", i)
	}
	lines := strings.Split(s.last(), "\n")
	expect(t, "lines kept", len(lines), tailLines)
	expect(t, "the last one", lines[len(lines)-1], "line 99")
}

func TestALogIsRotatedWhenItIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "stderr.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.size, l.kept = 10, 2
	for i := range 9 {
		if _, err := fmt.Fprintf(l, "line%d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	again.size, again.kept = 12, 2
	if _, err := again.Write([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"": "line8\nlast\n", ".1": "line7\n", ".2": "line6\n"} {
		got, err := os.ReadFile(path + file)
		if err != nil || string(got) != want {
			t.Errorf("stderr.log%s holds %q (%v), want %q", file, got, err, want)
		}
	}
	if _, err := os.Stat(path + ".3"); !os.IsNotExist(err) {
		t.Error("more old files are kept than were asked for")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "who may read it", info.Mode().Perm(), os.FileMode(0o600))
}
