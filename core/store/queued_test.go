package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAQueuedMessageWaitsAndIsNotLost(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "a talk")
		stranger := ref
		stranger.Owner = "usr_x"
		queue := func(id, text string, lease time.Duration) error {
			return s.QueueMessage(t.Context(), ref, core.QueuedMessage{ID: id, Message: core.Message{Role: "user", Content: text, Timestamp: time.Now()}}, lease)
		}
		add := func(role, text, queued string) error {
			_, err := s.AppendMessages(t.Context(), ref, []core.Message{{Role: role, Content: text, Queued: queued}})
			return err
		}
		waits := func() string {
			q, err := s.QueuedMessage(t.Context(), ref)
			if core.CodeOf(err) == core.CodeNotFound {
				return ""
			}
			if err != nil {
				t.Fatal(err)
			}
			return q.ID + " " + q.Message.Content
		}
		says := func(want ...string) {
			t.Helper()
			all, err := s.Messages(t.Context(), ref)
			var got []string
			for _, m := range all {
				got = append(got, m.Content)
				if len(m.Blocks)+len(m.Metadata) > 0 {
					t.Errorf("%q has the blocks %s and the metadata %s", m.Content, m.Blocks, m.Metadata)
				}
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("the messages are %q (%v), want %q", got, err, want)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}

		must(add("user", "one", ""))
		must(queue("q1", "two", time.Hour))
		wantCodes(t, core.CodeConflict, map[string]error{"a second": queue("q2", "three", time.Hour)})
		_, err := s.QueuedMessage(t.Context(), stranger)
		_, withdrawn := s.WithdrawQueued(t.Context(), stranger)
		wantCodes(t, core.CodeNotFound, map[string]error{
			"a read by another user": err, "a withdrawal by another user": withdrawn, "holding another": s.HoldQueued(t.Context(), ref, "q2", time.Hour),
			"beginning another": add("user", "three", "q2"),
		})
		must(add("assistant", "the first answer", ""))
		says("one", "the first answer")
		if got := waits(); got != "q1 two" {
			t.Errorf("%q waits", got)
		}
		must(add("user", "two", "q1"))
		says("one", "the first answer", "two")
		if got := waits(); got != "" {
			t.Errorf("%q still waits", got)
		}

		must(queue("q3", "withdrawn", time.Hour))
		if q, err := s.WithdrawQueued(t.Context(), ref); err != nil || q.Message.Content != "withdrawn" {
			t.Errorf("withdrawn: %+v %v", q, err)
		}
		_, again := s.WithdrawQueued(t.Context(), ref)
		wantCodes(t, core.CodeNotFound, map[string]error{"withdrawn again": again, "begun after that": add("user", "withdrawn", "q3")})

		must(queue("q4", "left", time.Hour))
		must(s.HoldQueued(t.Context(), ref, "q4", 0))
		if got := waits(); got != "" {
			t.Errorf("%q is waiting, but nobody holds it", got)
		}
		says("one", "the first answer", "two", "left")
		must(add("user", "three", ""))
		says("one", "the first answer", "two", "left", "three")

		must(queue("q5", "of a server that ended", time.Hour))
		must(s.EndUnfinished(t.Context()))
		if s.Shared() { // another server may hold the message
			if got := waits(); got != "q5 of a server that ended" {
				t.Errorf("%q waits", got)
			}
			must(s.HoldQueued(t.Context(), ref, "q5", 0))
			must(s.EndUnfinished(t.Context()))
		}
		says("one", "the first answer", "two", "left", "three", "of a server that ended")
		if c, err := s.Conversation(t.Context(), ref); err != nil || c.MessageCount != 6 {
			t.Errorf("the conversation has %d messages, %v", c.MessageCount, err)
		}
	})
}

func TestAQueuedMessageCountsTowardsTheQuota(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.quota.Bytes = 3000
		queue := func(name string) error {
			return s.QueueMessage(t.Context(), newConversation(t, s, name), core.QueuedMessage{ID: name, Message: core.Message{Role: "user", Content: strings.Repeat("x", 1000), Timestamp: time.Now()}}, time.Hour)
		}
		for _, name := range []string{"a", "b"} {
			if err := queue(name); err != nil {
				t.Fatal(err)
			}
		}
		wantCodes(t, core.CodeLimitReached, map[string]error{"a third": queue("c")})
	})
}
