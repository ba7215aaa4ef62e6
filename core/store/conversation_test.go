package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func said(role, content string) core.Message { return core.Message{Role: role, Content: content} }

func dollars(f float64) *float64 { return &f }

// newConversation creates a conversation of the owner with the given messages.
func newConversation(t testing.TB, s *Store, title string, add ...core.Message) core.ConversationRef {
	t.Helper()
	owner := core.Owner().User.ID
	c, err := s.CreateConversation(t.Context(), core.Conversation{Workspace: core.DefaultWorkspaceID, Owner: owner, Title: title})
	if err != nil {
		t.Fatal(err)
	}
	ref := core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: owner, ID: c.ID}
	if len(add) > 0 {
		grow(t, s, ref, add)
	}
	return ref
}

func grow(t testing.TB, s *Store, ref core.ConversationRef, add []core.Message, used ...core.Usage) core.Conversation {
	t.Helper()
	c, err := s.AppendMessages(t.Context(), ref, add, used...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func history(t testing.TB, s *Store, ref core.ConversationRef) []core.Message {
	t.Helper()
	all, err := s.Messages(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAConversationKeepsItsDisabledApps(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "a talk", core.Message{Role: "user", Content: "Hello", Timestamp: time.Now()})
		for _, apps := range [][]string{{"files", "mail"}, {"mail"}, {}} {
			changed, err := s.UpdateConversation(t.Context(), ref, core.ConversationPatch{DisabledApps: apps})
			if err != nil || !slices.Equal(changed.DisabledApps, apps) {
				t.Fatalf("changed to %v: %v, %v", apps, changed.DisabledApps, err)
			}
			title := "another title"
			if _, err := s.UpdateConversation(t.Context(), ref, core.ConversationPatch{Title: &title}); err != nil {
				t.Fatal(err)
			}
			read, err := s.Conversation(t.Context(), ref)
			fork, forked := s.ForkConversation(t.Context(), ref, -1)
			if err != nil || forked != nil || !slices.Equal(read.DisabledApps, apps) || !slices.Equal(fork.DisabledApps, apps) {
				t.Errorf("read %v, %v; its fork %v, %v; want %v", read.DisabledApps, err, fork.DisabledApps, forked, apps)
			}
		}
	})
}

func TestAWorkspaceKeepsItsInstructions(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for _, text := range []string{"", "Answer in French.\n☃", ""} {
			if err := s.SetWorkspaceInstructions(t.Context(), core.DefaultWorkspaceID, text); err != nil {
				t.Fatal(err)
			}
			if got, err := s.WorkspaceInstructions(t.Context(), core.DefaultWorkspaceID); err != nil || got != text {
				t.Errorf("%q, %v; want %q", got, err, text)
			}
		}
		_, err := s.WorkspaceInstructions(t.Context(), "ws_none")
		if set := s.SetWorkspaceInstructions(t.Context(), "ws_none", "x"); core.CodeOf(err) != core.CodeNotFound || core.CodeOf(set) != core.CodeNotFound {
			t.Errorf("a workspace that does not exist: %v, %v", err, set)
		}
	})
}

func TestAConversationIsReadBackAsItWasWritten(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "")
		at := time.UnixMilli(1_800_000_000_123).UTC()
		add := []core.Message{
			{Role: "user", Content: "Hello\nthere, \x00 \xff ☃", Timestamp: at},
			{Role: "assistant", Content: "Hi", Blocks: json.RawMessage(`[{"type":"text","text":"a \u0000 b"}]`),
				Metadata: json.RawMessage(`{"skill":null,"toolCalls":[]}`), Timestamp: at},
		}
		c := grow(t, s, ref, add)
		add[0].Content = "Hello\nthere, � � ☃" // after the characters that no database accepts were replaced
		if got := history(t, s, ref); !reflect.DeepEqual(got, add) {
			t.Errorf("got  %+v\nwant %+v", got, add)
		}
		again, err := s.Conversation(t.Context(), ref)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("got %+v, %v, want what the change returned, %+v", again, err, c)
		}
		if len(c.ID) != 21 || !strings.HasPrefix(c.ID, "conv_") || strings.Trim(c.ID[5:], "0123456789abcdef") != "" {
			t.Errorf("the id is %q", c.ID)
		}
		if c.Title != "" || c.Metadata != nil || c.MessageCount != 2 || c.Preview != "Hi" || c.UpdatedAt.Before(c.CreatedAt) {
			t.Errorf("got %+v", c)
		}
	})
}

func TestTotalsGrowWithModelUsage(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "", said("user", "question"))
		call := core.Usage{Model: "a:one", InputTokens: 100, OutputTokens: 10, Workspace: "ws_other", User: "usr_other", Conversation: "conv_other"}
		c := grow(t, s, ref, []core.Message{said("assistant", "one")}, call)
		if c.CostUSD != nil || c.InputTokens != 100 || c.OutputTokens != 10 || c.LastModel != "a:one" {
			t.Errorf("without a price: %+v", c)
		}
		priced := core.Usage{Model: "b:two", InputTokens: 1, OutputTokens: 2, CostUSD: dollars(0.25)}
		c = grow(t, s, ref, []core.Message{said("user", "next"), said("assistant", "two")}, priced, priced)
		if c.CostUSD == nil || *c.CostUSD != 0.5 || c.InputTokens != 102 || c.OutputTokens != 14 || c.LastModel != "b:two" || c.MessageCount != 4 {
			t.Errorf("with prices: %+v", c)
		}
		c = grow(t, s, ref, nil, priced) // a model call that was interrupted before it produced any text
		if *c.CostUSD != 0.75 || c.MessageCount != 4 || c.Preview != "two" {
			t.Errorf("usage alone: %+v", c)
		}
		r, err := s.Usage(t.Context(), core.UsageQuery{Workspace: ref.Workspace, User: ref.Owner, GroupBy: core.UsageByConversation})
		if err != nil || r.Totals.LLMCalls != 4 || len(r.Breakdown) != 1 || r.Breakdown[0].Key != ref.ID {
			t.Errorf("the usage: %+v, %v", r, err)
		}
	})
}

func TestAnAppendThatFailsLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "", said("user", "first"))
		before := grow(t, s, ref, nil)
		if _, err := s.db.WritePool().ExecContext(t.Context(), `ALTER TABLE words RENAME TO hidden`); err != nil { // the last table that an append writes
			t.Fatal(err)
		}
		if _, err := s.AppendMessages(t.Context(), ref, []core.Message{said("assistant", "second")}, core.Usage{Model: "m", InputTokens: 1}); err == nil {
			t.Fatal("no error")
		}
		if _, err := s.db.WritePool().ExecContext(t.Context(), `ALTER TABLE hidden RENAME TO words`); err != nil {
			t.Fatal(err)
		}
		if after, err := s.Conversation(t.Context(), ref); err != nil || !reflect.DeepEqual(after, before) {
			t.Errorf("got %+v, %v, want %+v", after, err, before)
		}
		if got := history(t, s, ref); len(got) != 1 {
			t.Errorf("%d messages, want only the first", len(got))
		}
		if r, err := s.Usage(t.Context(), core.UsageQuery{Workspace: ref.Workspace}); err != nil || r.Totals.LLMCalls != 0 {
			t.Errorf("the usage: %+v, %v", r.Totals, err)
		}
	})
}

func TestConcurrentAppendsAllGetAPosition(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "")
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				pair := []core.Message{said("user", fmt.Sprint(i)), said("assistant", fmt.Sprint(i))}
				if _, err := s.AppendMessages(t.Context(), ref, pair, core.Usage{Model: "m", InputTokens: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all := history(t, s, ref)
		for i := 0; i+1 < len(all); i += 2 {
			if all[i].Content != all[i+1].Content || all[i].Role != "user" {
				t.Fatalf("messages %d and %d are of two appends", i, i+1)
			}
		}
		if c, err := s.Conversation(t.Context(), ref); err != nil || c.MessageCount != 40 || len(all) != 40 || c.InputTokens != 20 {
			t.Errorf("%d messages, %+v, %v", len(all), c, err)
		}
	})
}

func TestAnotherUsersConversationLooksLikeOneThatDoesNotExist(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "mine", said("user", "private words"))
		stranger := provision(t, s, core.Identity{Issuer: "https://idp", Subject: "stranger"})
		theirs, err := s.Workspaces(t.Context(), stranger)
		if err != nil {
			t.Fatal(err)
		}
		title, refs := "stolen", map[string]core.ConversationRef{
			"an unknown id":        {Workspace: ref.Workspace, Owner: ref.Owner, ID: "conv_0123456789abcdef"},
			"another's":            {Workspace: ref.Workspace, Owner: stranger.ID, ID: ref.ID},
			"another workspace's":  {Workspace: theirs[0].ID, Owner: ref.Owner, ID: ref.ID},
			"no id":                {Workspace: ref.Workspace, Owner: ref.Owner, ID: "conv_x"},
			"the id in upper case": {Workspace: ref.Workspace, Owner: ref.Owner, ID: strings.ToUpper(ref.ID)},
			"an empty id":          {Workspace: ref.Workspace, Owner: ref.Owner},
		}
		want := make(map[string]string)
		for _, name := range []string{"an unknown id", "another's", "another workspace's", "no id", "the id in upper case", "an empty id"} {
			ref := refs[name]
			errs := map[string]error{}
			_, errs["get"] = s.Conversation(t.Context(), ref)
			_, errs["messages"] = s.Messages(t.Context(), ref)
			_, errs["append"] = s.AppendMessages(t.Context(), ref, []core.Message{said("user", "x")}, core.Usage{Model: "m"})
			_, errs["update"] = s.UpdateConversation(t.Context(), ref, core.ConversationPatch{Title: &title, Metadata: json.RawMessage(`{}`)})
			_, errs["fork"] = s.ForkConversation(t.Context(), ref, -1)
			errs["delete"] = s.DeleteConversation(t.Context(), ref)
			for call, err := range errs {
				if core.CodeOf(err) != core.CodeNotFound {
					t.Errorf("%s %s: %v", call, name, err)
					continue
				}
				says := strings.ReplaceAll(err.Error(), strconv.Quote(ref.ID), "ID")
				if want[call] == "" {
					want[call] = says
				}
				if says != want[call] {
					t.Errorf("%s %s says %q, want %q", call, name, says, want[call])
				}
			}
		}
		page, err := s.Conversations(t.Context(), ref.Workspace, stranger.ID, core.ConversationQuery{Search: "private"})
		if err != nil || page.TotalCount != 0 || len(page.Conversations) != 0 {
			t.Errorf("a stranger finds %+v, %v", page, err)
		}
		if got := history(t, s, ref); len(got) != 1 || got[0].Content != "private words" {
			t.Errorf("the conversation is %+v", got)
		}
	})
}

func TestTitleAndMetadataChangeIndependently(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "apples", said("user", "pears"))
		before, _ := s.Conversation(t.Context(), ref)
		title := "Plums"
		for _, c := range []struct {
			patch           core.ConversationPatch
			title, metadata string
		}{
			{core.ConversationPatch{}, "apples", ""},
			{core.ConversationPatch{Metadata: json.RawMessage(`{"pinned":true}`)}, "apples", `{"pinned":true}`},
			{core.ConversationPatch{Title: &title}, "Plums", `{"pinned":true}`},
			{core.ConversationPatch{Metadata: json.RawMessage(`{}`)}, "Plums", `{}`},
		} {
			got, err := s.UpdateConversation(t.Context(), ref, c.patch)
			if err != nil || got.Title != c.title || string(got.Metadata) != c.metadata || !got.UpdatedAt.Equal(before.UpdatedAt) {
				t.Errorf("got %+v, %v, want %+v", got, err, c)
			}
		}
		for search, want := range map[string]int{"apples": 0, "plums": 1, "pears": 1} {
			if got := find0(t, s, ref, search); got != want {
				t.Errorf("%q finds %d, want %d", search, got, want)
			}
		}
	})
}

func find0(t *testing.T, s *Store, ref core.ConversationRef, search string) int {
	t.Helper()
	page, err := s.Conversations(t.Context(), ref.Workspace, ref.Owner, core.ConversationQuery{Search: search})
	if err != nil || page.TotalCount != len(page.Conversations) {
		t.Fatalf("%+v, %v", page, err)
	}
	return page.TotalCount
}

func TestAForkHasTheFirstMessagesAndTheirUsage(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref := newConversation(t, s, "Trip", said("user", "rome"))
		grow(t, s, ref, []core.Message{said("assistant", "roma")}, core.Usage{Model: "m:1", InputTokens: 5, OutputTokens: 1, CostUSD: dollars(1)})
		grow(t, s, ref, []core.Message{said("user", "paris"), said("assistant", "lutetia")}, core.Usage{Model: "m:2", InputTokens: 7, OutputTokens: 2, CostUSD: dollars(2)})
		for at, want := range map[int]string{
			-1: "4 messages, lutetia, 12+3 tokens, $3, m:2", 4: "4 messages, lutetia, 12+3 tokens, $3, m:2", 99: "4 messages, lutetia, 12+3 tokens, $3, m:2",
			3: "3 messages, paris, 5+1 tokens, $1, m:1", 2: "2 messages, roma, 5+1 tokens, $1, m:1", 0: "0 messages, , 0+0 tokens, $-1, ",
		} {
			c, err := s.ForkConversation(t.Context(), ref, at)
			if err != nil {
				t.Fatal(err)
			}
			cost := -1.0
			if c.CostUSD != nil {
				cost = *c.CostUSD
			}
			got := fmt.Sprintf("%d messages, %s, %d+%d tokens, $%g, %s", c.MessageCount, c.Preview, c.InputTokens, c.OutputTokens, cost, c.LastModel)
			if got != want || c.Title != "Trip" || c.ID == ref.ID {
				t.Errorf("at %d: %s, want %s (%+v)", at, got, want, c)
			}
			fork := core.ConversationRef{Workspace: ref.Workspace, Owner: ref.Owner, ID: c.ID}
			if copied, all := history(t, s, fork), history(t, s, ref); !reflect.DeepEqual(copied, all[:c.MessageCount]) {
				t.Errorf("at %d: copied %+v", at, copied)
			}
			grow(t, s, fork, []core.Message{said("user", "of the fork alone")})
		}
		if got := history(t, s, ref); len(got) != 4 {
			t.Errorf("the original has %d messages", len(got))
		}
		if got := find0(t, s, ref, "lutetia"); got != 4 {
			t.Errorf("%d conversations contain the last word, want the original and three forks", got)
		}
		if r, err := s.Usage(t.Context(), core.UsageQuery{Workspace: ref.Workspace}); err != nil || r.Totals.LLMCalls != 2 {
			t.Errorf("forks were counted as calls: %+v, %v", r.Totals, err)
		}
	})
}

func TestADeletedConversationLeavesOnlyItsUsage(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ref, other := newConversation(t, s, "gone", said("user", "words")), newConversation(t, s, "stays", said("user", "words"))
		grow(t, s, ref, nil, core.Usage{Model: "m", InputTokens: 3})
		if err := s.DeleteConversation(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string]int{"conversations": 1, "messages": 1, "words": 2, "usage_records": 1} {
			var n int
			if err := s.db.ReadPool().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil || n != want {
				t.Errorf("%d rows in %s (%v), want %d", n, table, err, want)
			}
		}
		page, err := s.Conversations(t.Context(), ref.Workspace, ref.Owner, core.ConversationQuery{})
		if err != nil || page.TotalCount != 1 || len(page.Conversations) != 1 || page.Conversations[0].ID != other.ID {
			t.Errorf("got %+v, %v", page, err)
		}
	})
}

func TestAConversationNeedsAWorkspaceAndAnOwnerThatExist(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for _, c := range []core.Conversation{
			{Workspace: "ws_nowhere", Owner: core.Owner().User.ID}, {Workspace: core.DefaultWorkspaceID, Owner: "usr_nobody"},
		} {
			if _, err := s.CreateConversation(t.Context(), c); err == nil {
				t.Errorf("%+v was created", c)
			}
		}
	})
}

func TestALongMessageIsCutOnlyForThePreview(t *testing.T) {
	long := strings.Repeat("wörd ", 5000)
	each(t, func(t *testing.T, s *Store) {
		c := grow(t, s, newConversation(t, s, ""), []core.Message{said("assistant", long), said("assistant", " \n")})
		if got := []rune(c.Preview); len(got) != previewLength || got[previewLength-1] != '…' || !strings.HasPrefix(c.Preview, "wörd wörd ") {
			t.Errorf("the preview is %q", c.Preview)
		}
	})
}

// One caller's statement is interrupted while the writes of other callers are in the same transaction.
func TestACancelledWriteDoesNotAffectOtherWritesInItsTransaction(t *testing.T) {
	s := open(t)
	owner := core.Owner().User.ID
	var wg sync.WaitGroup
	for i := range 8 {
		ref := newConversation(t, s, fmt.Sprint(i))
		wg.Go(func() {
			for n := range 20 {
				grow(t, s, ref, []core.Message{said("user", fmt.Sprint("kept ", n))})
			}
			if got := history(t, s, ref); len(got) != 20 {
				t.Errorf("%d of 20 messages are kept", len(got))
			}
		})
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				_, err := s.AppendMessages(ctx, core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: owner, ID: ref.ID}, nil, core.Usage{Model: "m", InputTokens: 1})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
