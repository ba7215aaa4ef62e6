package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAQuestionHasOneReply(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		q := core.Question{ID: "elic_1", Workspace: "ws_a", Owner: "usr_a", Schema: json.RawMessage(`{"type":"object"}`), Until: time.UnixMilli(time.Now().UnixMilli()).UTC()}
		old := core.Question{ID: "elic_old", Until: time.Now().Add(-2 * keepQuestions)}
		for _, one := range []core.Question{old, q} { // the second deletes the first
			if err := s.PutQuestion(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		_, gone := s.Question(t.Context(), old.ID)
		wantCodes(t, core.CodeNotFound, map[string]error{"one that was left behind": gone, "a reply to none": s.SettleQuestion(t.Context(), "elic_2", json.RawMessage(`{}`))})
		if got, err := s.Question(t.Context(), q.ID); err != nil || got.Owner != q.Owner || got.Workspace != q.Workspace || string(got.Schema) != string(q.Schema) || !got.Until.Equal(q.Until) {
			t.Errorf("%+v, %v", got, err)
		}
		if reply, err := s.ReplyTo(t.Context(), q.ID); reply != nil || err != nil {
			t.Errorf("before it was answered: %s, %v", reply, err)
		}
		if err := s.SettleQuestion(t.Context(), q.ID, json.RawMessage(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeAlreadyAnswered, map[string]error{"a second reply": s.SettleQuestion(t.Context(), q.ID, json.RawMessage(`{"a":2}`))})
		if reply, err := s.ReplyTo(t.Context(), q.ID); string(reply) != `{"a":1}` || err != nil {
			t.Errorf("the reply is %s, %v", reply, err)
		}
		if err := s.DeleteQuestions(t.Context(), []string{q.ID, "none"}); err != nil {
			t.Fatal(err)
		}
		_, gone = s.Question(t.Context(), q.ID)
		wantCodes(t, core.CodeNotFound, map[string]error{"afterwards": gone})
	})
}
