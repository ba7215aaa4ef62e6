package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	writeUntilKilled = "write-until-killed"
	kills            = 30 // of this suite; the figure of the chaos suite is 500
)

// writeForever is the child: it installs app after app and prints each name once the store has
// acknowledged it, until it is killed.
func writeForever(path string) int {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: path})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := 0; ; i++ {
		name := strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(i)
		in := core.Installation{Workspace: core.DefaultWorkspaceID, Name: name, Version: "1.0.0", InstalledAt: time.Now()}
		if err := s.PutInstallation(ctx, in); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(name)
	}
}

func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	acknowledged := make(map[string]bool)
	for range kills {
		for _, name := range killedWriter(t, path) {
			acknowledged[name] = true
		}
	}
	s := openAt(t, path)
	installed, err := s.Installations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := make(map[string]bool)
	for _, in := range installed {
		kept[in.Name] = true
	}
	for name := range acknowledged {
		if !kept[name] {
			t.Errorf("app %s was acknowledged and is lost", name)
		}
	}
	if len(acknowledged) < kills {
		t.Fatalf("only %d writes in %d rounds: the test shows nothing", len(acknowledged), kills)
	}
	var verdict string
	if err := s.read.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity check: %q, %v", verdict, err)
	}
}

// killedWriter runs the child, kills it after a few acknowledged writes, at a random moment, and
// returns what was acknowledged.
func killedWriter(t *testing.T, path string) []string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], writeUntilKilled, path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var names []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		names = append(names, lines.Text())
		if len(names) == 3 {
			time.AfterFunc(time.Duration(rand.IntN(8000))*time.Microsecond, func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait() // it was killed
	if len(names) < 3 {
		t.Fatalf("the child ended after %d writes", len(names))
	}
	return names
}
