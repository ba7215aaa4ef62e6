package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/backup"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// writeUntilKilled is the child's first argument. The second is a file or a PostgreSQL address. The child prints each
// acknowledged write as "app <name>" or "turn <conversation> <number of the turn>".
const writeUntilKilled = "write-until-killed"

func optionsFor(place string) Options {
	if strings.HasPrefix(place, "postgres://") {
		return Options{URL: core.Secret(place)}
	}
	return Options{Path: place}
}

// childWriters is the number of concurrent writers in a child.
const childWriters = 3

// writeForever is the child process. It runs concurrent writers, each with its own conversation, until the child is
// killed.
func writeForever(place string) int {
	ctx := context.Background()
	s, err := Open(ctx, optionsFor(place))
	if err == nil {
		ended := make(chan error)
		for i := range childWriters {
			go func() { ended <- writeOn(ctx, s, fmt.Sprintf("%d-%d", os.Getpid(), i)) }()
		}
		err = <-ended
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// writeOn alternately installs an app and adds a turn to a conversation, and prints each once the store
// has acknowledged it.
func writeOn(ctx context.Context, s *Store, name string) error {
	owner := core.Owner().User.ID
	c, err := s.CreateConversation(ctx, core.Conversation{Workspace: core.DefaultWorkspaceID, Owner: owner})
	if err != nil {
		return err
	}
	ref := core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: owner, ID: c.ID}
	for i := 1; ; i++ {
		app := name + "-" + strconv.Itoa(i)
		if err := s.AddInstallation(ctx, core.Installation{Workspace: ref.Workspace, Name: app, InstalledAt: time.Now()}); err != nil {
			return err
		}
		fmt.Println("app", app)
		turn := []core.Message{said("user", "question "+strconv.Itoa(i)), said("assistant", "answer "+strconv.Itoa(i))}
		if _, err := s.AppendMessages(ctx, ref, turn, core.Usage{Model: "m", InputTokens: 3}); err != nil {
			return err
		}
		fmt.Println("turn", ref.ID, i)
	}
}

func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ropewalk.db")
		holdsAcknowledged(t, path, killWriters(t, path, kills))
		if err := backup.Verify(t.Context(), path); err != nil {
			t.Error(err)
		}
	})
	t.Run("postgres", func(t *testing.T) {
		url := newDatabase(t)
		holdsAcknowledged(t, url, killWriters(t, url, kills))
	})
}

func TestNothingAcknowledgedIsLostWhenPostgresIsKilled(t *testing.T) {
	server := testenv.StartPostgres(t)
	var acknowledged []string
	for range serverKills {
		acknowledged = append(acknowledged, writeUntil(t, server.URL, func(*os.Process) { server.Kill() })...)
		server.Start()
	}
	holdsAcknowledged(t, server.URL, acknowledged)
}

func killWriters(t *testing.T, place string, rounds int) (acknowledged []string) {
	t.Helper()
	for range rounds {
		acknowledged = append(acknowledged, writeUntil(t, place, func(p *os.Process) { _ = p.Kill() })...)
	}
	return acknowledged
}

// writeUntil runs the child, calls end at a random moment after a few acknowledged writes, and returns the acknowledged
// writes.
func writeUntil(t *testing.T, place string, end func(*os.Process)) (acknowledged []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], writeUntilKilled, place)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if acknowledged = append(acknowledged, lines.Text()); len(acknowledged) == 4*childWriters {
			go func() {
				defer close(ended)
				<-time.After(time.Duration(rand.IntN(8000)) * time.Microsecond)
				end(child.Process)
			}()
		}
	}
	_ = child.Wait() // it was killed, or lost its database
	if len(acknowledged) < 4*childWriters {
		t.Fatalf("the child ended after %d writes", len(acknowledged))
	}
	<-ended
	return acknowledged
}

// holdsAcknowledged checks that the state contains everything that was acknowledged, and each turn either
// completely or not at all.
func holdsAcknowledged(t *testing.T, place string, acknowledged []string) {
	t.Helper()
	s, err := Open(t.Context(), optionsFor(place))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	kept, turns := make(map[string]bool), make(map[string]int)
	installed, err := s.Installations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range installed {
		kept[in.Name] = true
	}
	for _, line := range acknowledged {
		switch what := strings.Fields(line); what[0] {
		case "app":
			if !kept[what[1]] {
				t.Errorf("%s was acknowledged and is lost", line)
			}
		case "turn":
			turns[what[1]]++
		}
	}
	for id, n := range turns {
		ref := core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: core.Owner().User.ID, ID: id}
		c, err := s.Conversation(t.Context(), ref)
		all, readErr := s.Messages(t.Context(), ref)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if len(all) < 2*n || len(all) > 2*n+2 || len(all)%2 != 0 || c.MessageCount != len(all) || c.InputTokens != int64(3*len(all)/2) {
			t.Errorf("%d turns of %s were acknowledged, but it has %d messages and reports %d messages with %d tokens", n, id, len(all), c.MessageCount, c.InputTokens)
		}
		for i, m := range all {
			if want := fmt.Sprintf("%s %d", []string{"question", "answer"}[i%2], i/2+1); m.Content != want {
				t.Errorf("message %d of %s is %q, want %q", i, id, m.Content, want)
			}
		}
	}
	if len(turns) == 0 {
		t.Error("no message was acknowledged, so the test proves nothing")
	}
}
