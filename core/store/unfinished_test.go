package store

import (
	"slices"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestPartsLeftByAKilledServerBecomeAMessage(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "a talk")
		add := func(role, text string) {
			t.Helper()
			if _, err := s.AppendMessages(t.Context(), ref, []core.Message{{Role: role, Content: text}}); err != nil {
				t.Fatal(err)
			}
		}
		save := func(m *core.Message) {
			t.Helper()
			if err := s.SaveUnfinished(t.Context(), ref, m); err != nil {
				t.Fatal(err)
			}
		}
		says := func(want ...string) {
			t.Helper()
			all, err := s.Messages(t.Context(), ref)
			got := []string{}
			for _, m := range all {
				text := m.Content
				if m.Unfinished {
					text += "…"
				}
				got = append(got, text)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("the messages are %q (%v), want %q", got, err, want)
			}
		}
		part := func(text string) *core.Message {
			return &core.Message{Role: "assistant", Content: text, Timestamp: time.Now(), Metadata: []byte(`{"stopReason":"incomplete"}`)}
		}

		add("user", "one")
		save(part("a"))
		save(part("a b"))
		says("one", "a b…")
		add("assistant", "a b c")
		says("one", "a b c")
		add("user", "two")
		save(part("d"))
		save(nil)
		says("one", "a b c", "two")
		save(part("d"))
		add("user", "three")
		says("one", "a b c", "two", "d", "three")
		save(part("e"))
		if fork, err := s.ForkConversation(t.Context(), ref, -1); err != nil || fork.MessageCount != 6 {
			t.Errorf("a fork has %d messages, %v", fork.MessageCount, err)
		}
		if err := s.ClaimRun(t.Context(), ref, "run", time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.EndUnfinished(t.Context()); err != nil {
			t.Fatal(err)
		}
		says("one", "a b c", "two", "d", "three", "e…")
		if err := s.ReleaseRun(t.Context(), ref, "run"); err != nil {
			t.Fatal(err)
		}
		if err := s.EndUnfinished(t.Context()); err != nil {
			t.Fatal(err)
		}
		says("one", "a b c", "two", "d", "three", "e")
		if c, err := s.Conversation(t.Context(), ref); err != nil || c.MessageCount != 6 {
			t.Errorf("the conversation has %d messages, %v", c.MessageCount, err)
		}
	})
}
