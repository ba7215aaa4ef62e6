package logs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLastLinesAreReadFromOlderFilesToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stderr.log")
	if lines, err := Tail(path, 10); err != nil || len(lines) != 0 {
		t.Errorf("reading a log that does not exist returned %q (%v)", lines, err)
	}
	log, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log.maxSize = 20
	for i := range 9 {
		fmt.Fprintf(log, "line %d\n", i)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := Tail(path, 3)
	if err != nil || strings.Join(lines, ",") != "line 6,line 7,line 8" {
		t.Errorf("the tail is %q (%v)", lines, err)
	}
}

func TestAFollowerGetsNewLinesAcrossARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stderr.log")
	log, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log.maxSize = 20
	fmt.Fprintln(log, "before")
	ctx, cancel := context.WithCancel(t.Context())
	lines := Follow(ctx, path)
	for i := range 3 {
		fmt.Fprintf(log, "line %d\n", i)
		expect(t, "line", <-lines, fmt.Sprintf("line %d", i))
	}
	cancel()
	for range lines { // until it is closed
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}
