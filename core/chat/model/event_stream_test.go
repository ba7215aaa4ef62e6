package model

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAnEventStreamIsReadAsBrowsersDo(t *testing.T) {
	s := NewEventStream(strings.NewReader("\ufeffdata: zero\r\r: comment\r\nevent: x\r\ndata: one\r\n\r\n\n\ndata:two\ndata: lines\n\ndata: cut off"))
	for _, want := range []string{"zero", "one", "two\nlines", "cut off"} {
		if got, err := s.Next(); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestEventsWithoutDataAreSkipped(t *testing.T) {
	s := NewEventStream(strings.NewReader("data:\n\ndata: \n\nevent: ping\ndata:\n\ndata: one\n\ndata:"))
	if got, err := s.Next(); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %q, %v", got, err)
	}
}

func TestAnEventThatEndsWithACarriageReturnDoesNotWaitForMore(t *testing.T) {
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, "data: one\r\r") }()
	if got, err := NewEventStream(r).Next(); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
}
