package store

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/backup"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// silencer forwards connections to PostgreSQL. After a call to silence, existing connections stay open but forward
// nothing, and new connections work.
type silencer struct {
	net.Listener
	target string
	age    atomic.Int64 // number of calls to silence
	mu     sync.Mutex
	open   []net.Conn
}

func silence(t *testing.T, target string) *silencer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &silencer{Listener: l, target: target}
	var copying sync.WaitGroup
	copying.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			s.mu.Lock()
			s.open = append(s.open, in, out)
			s.mu.Unlock()
			age := s.age.Load()
			copying.Go(func() { s.pass(out, in, age) })
			copying.Go(func() { s.pass(in, out, age) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.open {
			_ = c.Close()
		}
		s.mu.Unlock()
		copying.Wait()
	})
	return s
}

func (s *silencer) pass(to, from net.Conn, age int64) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if s.age.Load() == age && n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func TestSilentPostgresConnectionsFailAndFollowersCatchUp(t *testing.T) {
	url := newDatabase(t)
	c, err := database.ParseURL(core.Secret(url))
	if err != nil {
		t.Fatal(err)
	}
	target := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if strings.HasPrefix(c.Host, "/") {
		t.Skip("PostgreSQL listens on a Unix socket only")
	}
	s := silence(t, target)
	through := strings.Replace(url, target, s.Addr().String(), 1)
	if through == url {
		t.Fatalf("%s is not in the address", target)
	}
	other, follower := openURL(t, url), openURL(t, through)
	changes := follower.Changes(t.Context())
	ref := newConversation(t, follower, "", said("user", "kept"))
	s.age.Add(1)
	began := time.Now()
	if err := other.PutSetting(t.Context(), "x", "y"); err != nil {
		t.Fatal(err)
	}
	_, first := follower.Messages(t.Context(), ref)
	_, second := follower.Conversation(t.Context(), ref)
	if took := time.Since(began); took > 9500*time.Millisecond {
		t.Errorf("two statements took %s", took)
	}
	if first == nil {
		t.Error("a silent connection returned a result")
	}
	if core.CodeOf(first) != core.CodeUnavailable || second != nil && core.CodeOf(second) != core.CodeUnavailable {
		t.Errorf("%v, %v", first, second)
	}
	select {
	case got := <-changes:
		if took := time.Since(began); got.Name != "x" && got.Kind != core.ChangeAll || took > 30*time.Second {
			t.Errorf("%+v after %s", got, took)
		}
	case <-time.After(time.Minute):
		t.Error("the follower never received the change")
	}
	if _, err := follower.Messages(t.Context(), ref); err != nil {
		t.Errorf("with new connections: %v", err)
	}
}

func TestAReplacedOrRemovedHomeRefusesWrites(t *testing.T) {
	for name, harm := range map[string]func(home string) error{
		"removed": os.RemoveAll,
		"replaced": func(home string) error {
			return errors.Join(os.Rename(home, home+".old"), os.Mkdir(home, 0o700), os.WriteFile(filepath.Join(home, "ropewalk.db"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			s := openAt(t, filepath.Join(home, "ropewalk.db"))
			ref := newConversation(t, s, "t", said("user", "before"))
			if err := harm(home); err != nil {
				t.Fatal(err)
			}
			_, appended := s.AppendMessages(t.Context(), ref, []core.Message{said("user", "lost")})
			for what, err := range map[string]error{"append": appended, "setting": s.PutSetting(t.Context(), "a", "b"), "check": s.CheckWritable(t.Context())} {
				if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(err.Error(), "nothing was changed") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestAnEmptyOrMissingDatabaseNextToAppsIsNotAFirstStart(t *testing.T) {
	for name, o := range map[string]func(t *testing.T, home string) Options{
		"missing file": func(_ *testing.T, home string) Options { return Options{Path: filepath.Join(home, "ropewalk.db")} },
		"empty file":   func(_ *testing.T, home string) Options { return Options{Path: filepath.Join(home, "empty.db")} },
		"PostgreSQL database": func(t *testing.T, home string) Options {
			return Options{Path: filepath.Join(home, "x"), URL: core.Secret(newDatabase(t))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if err := errors.Join(os.MkdirAll(filepath.Join(home, "apps", "notes", "bundle"), 0o700), os.WriteFile(filepath.Join(home, "empty.db"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			options := o(t, home)
			if s, err := Open(t.Context(), options); err == nil {
				_ = s.Close()
				t.Fatal("it started")
			} else if !strings.Contains(err.Error(), "files of apps such as notes; restore a backup") {
				t.Errorf("%v", err)
			}
			if err := os.Rename(filepath.Join(home, "apps"), filepath.Join(home, "away")); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestATitleSetByAPersonIsNotReplacedByTheAutomaticOne(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for range 20 {
			ref := newConversation(t, s, "", said("user", "hi"))
			person, automatic := "Mine", "Found"
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := s.UpdateConversation(t.Context(), ref, core.ConversationPatch{Title: &person}); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				if _, err := s.UpdateConversation(t.Context(), ref, core.ConversationPatch{Title: &automatic, OnlyUntitled: true}); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			if c, err := s.Conversation(t.Context(), ref); err != nil || c.Title != person {
				t.Fatalf("the title is %q, %v", c.Title, err)
			}
		}
	})
}

func TestARestoreRefusesFlippedBytes(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}
	s := openIn(t, o)
	newConversation(t, s, "t", said("user", strings.Repeat("a message of some length ", 40)))
	file := filepath.Join(t.TempDir(), "backup")
	if err := backup.Write(t.Context(), o.Location(), file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(raw), "a message of some length")
	raw[at+5] ^= 1
	raw[at+7] ^= 1
	flipped := variant(t, string(raw))
	if _, err := backup.Restore(t.Context(), database.Location{Path: filepath.Join(t.TempDir(), "new.db")}, flipped, false); err == nil || !strings.Contains(err.Error(), "the file is damaged: part ") {
		t.Errorf("%v", err)
	}
	if _, err := backup.Restore(t.Context(), database.Location{Path: filepath.Join(t.TempDir(), "new.db")}, file, false); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}
