package stream

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestAStalledReaderIsDisconnectedAfter10Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(hclog.NewNullLogger())
		client, server := net.Pipe() // a write blocks until the other end reads, and it never does
		start := time.Now()
		var failed error
		s.serve(server, Standing, &Writer{conn: server, head: []byte("head")}, func(ctx context.Context, w *Writer) {
			failed = w.Event("e", []byte("1"))
			<-ctx.Done()
			if err := w.Comment(); !errors.Is(err, ErrClosed) {
				t.Errorf("a later write says %v", err)
			}
		})
		if took := time.Since(start); took != writeTimeout || !os.IsTimeout(failed) {
			t.Errorf("the stream ended after %v with %v", took, failed)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("the stream is still counted: %v", err)
		}
		client.Close()
		server.Close()
	})
}

func TestAStandingStreamThatArrivesAfterDrainEndsAtOnce(t *testing.T) {
	s := New(hclog.NewNullLogger())
	first := &openStream{kind: Response, cancel: func() {}}
	if !s.enter(first) {
		t.Fatal("refused before drain")
	}
	s.Drain()
	cancelled := false
	late := &openStream{kind: Standing, cancel: func() { cancelled = true }}
	if !s.enter(late) || !cancelled {
		t.Error("a late standing stream is still open")
	}
	s.leave(late)
	s.leave(first)
	if s.enter(&openStream{kind: Response, cancel: func() {}}) {
		t.Error("a stream was opened after the shutdown")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
