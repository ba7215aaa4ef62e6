package main_test

import (
	"bufio"
	"io"
	"strings"
	"syscall"
	"testing"
)

func TestStoppingTheSampleAppIsNotAnError(t *testing.T) {
	t.Parallel()
	cmd := newScript(t).command("ropewalk", "sample")
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe() // stays open, so that only the signal ends the app
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	if _, err := io.WriteString(in, hello+"\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v: %s", answer, err, errs.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errs.Len() > 0 {
		t.Errorf("it exited with %v and wrote %q", err, errs.String())
	}
}
