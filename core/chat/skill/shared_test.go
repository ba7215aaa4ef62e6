package skill_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

var errFull = errors.New("full")

func TestSkillsWrittenByUsersReachAllServers(t *testing.T) {
	kept := fakes.NewSettings(map[string]string{"models.default": "a:b", "skill/../x": "outside the home", "skill/ws_x/../../x": "outside the home"})
	kept.Refuse = func(name string) error {
		if strings.HasSuffix(name, "/full") {
			return errFull
		}
		return nil
	}
	server := func() (l *skill.Library, home string) {
		home = t.TempDir()
		l = skill.NewLibrary(home, nil, hclog.NewNullLogger())
		l.Share(kept)
		return l, home
	}
	bodies := func(l *skill.Library) map[string]string {
		t.Helper()
		if err := l.Sync(t.Context(), skill.KeptPrefix); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, s := range l.Skills("ws_x") {
			found[s.Name] = s.Body
		}
		return found
	}
	put := func(l *skill.Library, name, body string) error {
		_, err := l.Put(t.Context(), "ws_x", skill.Skill{Name: name, Type: "skill", Body: body})
		return err
	}
	a, _ := server()
	b, home := server()
	own := filepath.Join(home, "workspaces", "ws_x", "skills", "of-b", "SKILL.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.WriteFile(own, []byte("---\nname: two\ndescription: d\n---\nlocal"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(put(a, "one", "first"), put(a, "two", "second")); err != nil {
		t.Fatal(err)
	}
	if got := bodies(b); !maps.Equal(got, map[string]string{"one": "first", "two": "second"}) {
		t.Errorf("the other server has %v", got)
	}
	if err := errors.Join(put(b, "one", "anew"), b.Delete(t.Context(), "ws_x", "two")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := bodies(a); !maps.Equal(got, map[string]string{"one": "anew"}) {
			t.Errorf("the first server has %v", got)
		}
	}
	late, _ := server()
	if got := bodies(late); !maps.Equal(got, map[string]string{"one": "anew"}) {
		t.Errorf("a server that joins later has %v", got)
	}
	if err := put(a, "full", "x"); !errors.Is(err, errFull) || bodies(a)["full"] != "" {
		t.Errorf("a skill that cannot be stored for all servers: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "..", "x*")); len(left) > 0 {
		t.Errorf("written outside the home: %v", left)
	}
}
