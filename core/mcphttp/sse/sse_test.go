package sse

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestAJournalStaysWithinItsLimits(t *testing.T) {
	var j Journal
	for range 2 * maxKept {
		j.Add(1, []byte("small"))
	}
	if len(j.kept) != maxKept || j.bytes != 5*maxKept {
		t.Errorf("%d events, %d bytes", len(j.kept), j.bytes)
	}
	for range 10 {
		j.Add(2, make([]byte, maxKeptBytes/4))
	}
	if len(j.kept) != 4 || j.bytes != maxKeptBytes {
		t.Errorf("%d events, %d bytes", len(j.kept), j.bytes)
	}
	j.end(1)
	if j.Resume(1, 0, NewQueue()) {
		t.Error("a stream without a journal should not be resumable")
	}
	j.Add(2, make([]byte, 2*maxKeptBytes))
	if len(j.kept) != 0 || j.bytes != 0 {
		t.Errorf("%d events, %d bytes", len(j.kept), j.bytes)
	}
}

func TestAClientThatReconnectsTwiceResumesOnce(t *testing.T) {
	var j Journal
	j.Add(1, []byte("a"))
	first, second := NewQueue(), NewQueue()
	if !j.Resume(1, 0, first) || !j.Resume(1, 0, second) {
		t.Fatal("not resumed")
	}
	j.Add(1, []byte("b"))
	j.Release(1, first) // too late, because the second reader has the stream
	j.Add(1, []byte("c"))
	j.end(1)
	if got, open := first.Take(); len(got) != 1 || open {
		t.Errorf("the first read %v, open %v", got, open)
	}
	if got, open := second.Take(); len(got) != 3 || open {
		t.Errorf("the second read %v, open %v", got, open)
	}
}

func TestAStreamThatBrokeBeforeItsFirstEventCanBeResumed(t *testing.T) {
	var j Journal
	x := NewResponse(1, false)
	x.Record(&j, 3, false)
	x.BeginStream()
	x.abandon() // the client's connection breaks before anything is sent
	again := NewQueue()
	if !j.Resume(3, 0, again) {
		t.Error("the stream cannot be resumed")
	}
	x.Answer([]byte(`{}`))
	if got, open := again.Take(); len(got) != 1 || string(got[0].Text) != `{}` || open {
		t.Errorf("read %v, open %v", got, open)
	}
}

func TestASilentResponseKeepsItsConnectionOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		q := NewQueue()
		r := NewBody(q, here)
		defer r.Close()
		begin, p := time.Now(), make([]byte, 64)
		n, err := r.Read(p)
		if err != nil || string(p[:n]) != ":\n\n" || time.Since(begin) != KeepAlive {
			t.Errorf("%q %v after %v", p[:n], err, time.Since(begin))
		}
		q.Push([]byte("{\"a\":\r\n1}"))
		q.Close()
		text, err := io.ReadAll(r)
		if err != nil || string(text) != "event: message\ndata: {\"a\":  1}\n\n" {
			t.Errorf("%q %v", text, err)
		}
	})
}

func TestAnEventOfAnySizeIsAddedToAnEmptyQueue(t *testing.T) {
	q := NewQueue()
	large := make([]byte, maxQueuedBytes+1)
	q.Push(large)
	if events, open := q.Take(); len(events) != 1 || !open {
		t.Errorf("one large event: %d events, open %v", len(events), open)
	}
	q.Push([]byte("first"))
	q.Push(large)
	if events, open := q.Take(); len(events) != 0 || open {
		t.Errorf("a large event after another: %d events, open %v", len(events), open)
	}
}
