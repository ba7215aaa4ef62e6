package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// asJSON returns v in the form that the API shows.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestUsageIsSummedByDayModelAndConversation(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		day := time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)
		other, err := s.CreateWorkspace(t.Context(), "other", core.Owner().User.ID)
		if err != nil {
			t.Fatal(err)
		}
		const first, second = "conv_00000000000000aa", "conv_ffffffffffffff01"
		put := func(u core.Usage) {
			t.Helper()
			if u.Workspace == "" {
				u.Workspace = core.DefaultWorkspaceID
			}
			u.LLM, u.ToolCalls, u.CacheReadTokens, u.CacheWriteTokens = 250*time.Millisecond, 2, 3, 4
			if err := s.PutUsage(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		put(core.Usage{User: "u1", Model: "a:free", At: day.Add(-time.Millisecond), InputTokens: 1000}) // the day before
		put(core.Usage{User: "u1", Model: "a:free", At: day, InputTokens: 10, OutputTokens: 1, Conversation: first})
		put(core.Usage{User: "u1", Model: "b:dear", At: day.Add(23 * time.Hour), InputTokens: 10, OutputTokens: 1, CostUSD: dollars(0.5), Conversation: first})
		put(core.Usage{User: "u2", Model: "b:dear", At: day.Add(24 * time.Hour), InputTokens: 20, OutputTokens: 2, CostUSD: dollars(0), Conversation: second})
		put(core.Usage{User: "u2", Model: "c:new", At: day.Add(25 * time.Hour), InputTokens: 1, OutputTokens: 0})
		put(core.Usage{User: "u2", Model: "b:dear", At: day.Add(48 * time.Hour), InputTokens: 5000}) // the day after
		put(core.Usage{User: "u1", Model: "b:dear", At: day, InputTokens: 7777, Workspace: other.ID})

		const totals = `"inputTokens":41,"outputTokens":4,"cacheReadTokens":12,"cacheWriteTokens":16,"costUsd":0.5,"llmCalls":4,"unpricedCalls":2,"llmMs":1000,"conversations":2,"toolCalls":8`
		const free = `"inputTokens":10,"outputTokens":1,"cacheReadTokens":3,"cacheWriteTokens":4,"costUsd":null,"llmCalls":1,"unpricedCalls":1,"llmMs":250,"conversations":1,"toolCalls":2`
		const dear = `"inputTokens":30,"outputTokens":3,"cacheReadTokens":6,"cacheWriteTokens":8,"costUsd":0.5,"llmCalls":2,"unpricedCalls":0,"llmMs":500,"conversations":2,"toolCalls":4`
		const fresh = `"inputTokens":1,"outputTokens":0,"cacheReadTokens":3,"cacheWriteTokens":4,"costUsd":null,"llmCalls":1,"unpricedCalls":1,"llmMs":250,"conversations":0,"toolCalls":2`
		const both1 = `"inputTokens":20,"outputTokens":2,"cacheReadTokens":6,"cacheWriteTokens":8,"costUsd":0.5,"llmCalls":2,"unpricedCalls":1,"llmMs":500,"conversations":1,"toolCalls":4`
		const zero = `"inputTokens":20,"outputTokens":2,"cacheReadTokens":3,"cacheWriteTokens":4,"costUsd":0,"llmCalls":1,"unpricedCalls":0,"llmMs":250,"conversations":1,"toolCalls":2`
		const last = `"inputTokens":21,"outputTokens":2,"cacheReadTokens":6,"cacheWriteTokens":8,"costUsd":0,"llmCalls":2,"unpricedCalls":1,"llmMs":500,"conversations":1,"toolCalls":4`
		const models = `[{"model":"b:dear",` + dear + `},{"model":"a:free",` + free + `},{"model":"c:new",` + fresh + `}]`
		window := core.UsageQuery{Workspace: core.DefaultWorkspaceID, From: day, To: day.Add(48 * time.Hour)}
		for by, want := range map[core.UsageGroup]string{
			core.UsageByDay:          `[{"key":"2026-11-19",` + both1 + `},{"key":"2026-11-20",` + last + `}]`,
			core.UsageByModel:        `[{"key":"b:dear",` + dear + `},{"key":"a:free",` + free + `},{"key":"c:new",` + fresh + `}]`,
			core.UsageByConversation: `[{"key":"` + second + `",` + zero + `},{"key":"` + first + `",` + both1 + `},{"key":"",` + fresh + `}]`,
		} {
			window.GroupBy = by
			r, err := s.Usage(t.Context(), window)
			if err != nil {
				t.Fatal(err)
			}
			if got := asJSON(t, r.Totals); got != "{"+totals+"}" {
				t.Errorf("totals by %s:\n%s, want\n%s", by, got, totals)
			}
			if got := asJSON(t, r.Models); got != models {
				t.Errorf("models by %s:\n%s, want\n%s", by, got, models)
			}
			if by == core.UsageByConversation { // the order of two conversations with equal tokens is undefined
				if r.Breakdown[0].Key == first {
					r.Breakdown[0], r.Breakdown[1] = r.Breakdown[1], r.Breakdown[0]
				}
			}
			if got := asJSON(t, r.Breakdown); got != want {
				t.Errorf("by %s:\n%s, want\n%s", by, got, want)
			}
		}
		for name, c := range map[string]struct {
			q    core.UsageQuery
			want int64
		}{
			"everything":                      {core.UsageQuery{Workspace: core.DefaultWorkspaceID}, 6041},
			"the usage of one user":           {core.UsageQuery{Workspace: core.DefaultWorkspaceID, User: "u1"}, 1020},
			"the usage since a time":          {core.UsageQuery{Workspace: core.DefaultWorkspaceID, From: day.Add(48 * time.Hour)}, 5000},
			"the usage until a time":          {core.UsageQuery{Workspace: core.DefaultWorkspaceID, To: day}, 1000},
			"the usage in another workspace":  {core.UsageQuery{Workspace: other.ID}, 7777},
			"a workspace that does not exist": {core.UsageQuery{Workspace: "ws_nowhere"}, 0},
			"a time without usage":            {core.UsageQuery{Workspace: core.DefaultWorkspaceID, From: day.Add(72 * time.Hour)}, 0},
		} {
			r, err := s.Usage(t.Context(), c.q)
			if err != nil || r.Totals.InputTokens != c.want {
				t.Errorf("%s: %d tokens, %v, want %d", name, r.Totals.InputTokens, err, c.want)
			}
			if c.want == 0 && asJSON(t, r) != `{"Totals":{"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":null,"llmCalls":0,"unpricedCalls":0,"llmMs":0,"conversations":0,"toolCalls":0},"Models":[],"Breakdown":[]}` {
				t.Errorf("%s: %s", name, asJSON(t, r))
			}
		}
	})
}

func TestUsageIsGroupedByUserWithTheEmail(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		user, err := s.Provision(t.Context(), core.Identity{Issuer: "https://idp.example", Subject: "a", User: core.User{Email: "a@example.com"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{user.ID, user.ID, "usr_gone"} {
			if err := s.PutUsage(t.Context(), core.Usage{Workspace: core.DefaultWorkspaceID, User: id, Model: "p:m", InputTokens: 5}); err != nil {
				t.Fatal(err)
			}
		}
		report, err := s.Usage(t.Context(), core.UsageQuery{Workspace: core.DefaultWorkspaceID, GroupBy: core.UsageByUser})
		if err != nil || len(report.Breakdown) != 2 {
			t.Fatalf("%+v %v", report.Breakdown, err)
		}
		first, second := report.Breakdown[0], report.Breakdown[1]
		if first.Key != user.ID || first.Label != "a@example.com" || first.InputTokens != 10 || second.Key != "usr_gone" || second.Label != "" {
			t.Errorf("%+v", report.Breakdown)
		}
	})
}
