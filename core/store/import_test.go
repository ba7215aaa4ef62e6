package store

import (
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestImportedConversationsBehaveLikeOthers(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		newConversation(t, s, "before", said("user", "hello"))
		at := time.UnixMilli(1_700_000_000_000).UTC()
		first, last := said("user", "hello \x00 there"), said("assistant", "general")
		first.Timestamp, last.Timestamp = at, at.Add(time.Minute)
		all := []Transcript{{Title: "old", Messages: []core.Message{first, last}}, {Title: "empty"}}
		owner := core.Owner().User.ID
		if err := s.ImportConversations(t.Context(), core.DefaultWorkspaceID, owner, all); err != nil {
			t.Fatal(err)
		}
		newConversation(t, s, "after", said("user", "hello"))
		if got := found(t, s, "hello "); got != "after, before, old" {
			t.Errorf("found %s", got)
		}
		page, err := s.Conversations(t.Context(), core.DefaultWorkspaceID, owner, core.ConversationQuery{Search: "old hello there "})
		if err != nil || len(page.Conversations) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		c := page.Conversations[0]
		if !c.CreatedAt.Equal(at) || !c.UpdatedAt.Equal(at.Add(time.Minute)) || c.MessageCount != 2 || c.Preview != "general" {
			t.Errorf("%+v", c)
		}
		ref := core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: owner, ID: c.ID}
		grow(t, s, ref, []core.Message{said("user", "thanks")})
		if got := history(t, s, ref); len(got) != 3 || got[0].Content != "hello � there" || got[2].Content != "thanks" {
			t.Errorf("%+v", got)
		}
		if page, err = s.Conversations(t.Context(), core.DefaultWorkspaceID, owner, core.ConversationQuery{}); err != nil || page.TotalCount != 4 {
			t.Errorf("%d conversations, %v", page.TotalCount, err)
		}
		err = s.ImportConversations(t.Context(), "ws_none", owner, all)
		if err == nil {
			t.Error("imported into a workspace that does not exist")
		}
	})
}
