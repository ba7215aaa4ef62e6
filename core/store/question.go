package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// keepQuestions is how long a question is kept past its deadline if its server was killed before it could delete the
// question.
const keepQuestions = time.Hour

// PutQuestion stores a question from a run of this server. DeleteQuestions deletes it when the run ends.
func (s *Store) PutQuestion(ctx context.Context, q core.Question) error {
	return s.db.Update(ctx, "storing a question", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM questions WHERE open_until < $1`, database.Millis(time.Now().Add(-keepQuestions))); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO questions (id, workspace, owner, form, open_until) VALUES ($1, $2, $3, $4, $5)`,
			q.ID, q.Workspace, q.Owner, string(q.Schema), database.Millis(q.Until))
		return err
	})
}

// Question returns a question from a run of any server, or core.CodeNotFound.
func (s *Store) Question(ctx context.Context, id string) (core.Question, error) {
	q, form, until := core.Question{ID: id}, "", int64(0)
	err := s.db.Get(ctx, "reading a question", `SELECT workspace, owner, form, open_until FROM questions WHERE id = $1`, []any{id}, &q.Workspace, &q.Owner, &form, &until)
	if form != "" {
		q.Schema = json.RawMessage(form)
	}
	q.Until = database.FromMillis(until)
	return q, database.Missing(err, core.Errorf(core.CodeNotFound, "no such question"))
}

// SettleQuestion stores the first reply to a question. The error is core.CodeAlreadyAnswered if there is a reply
// already, and core.CodeNotFound if there is no such question.
func (s *Store) SettleQuestion(ctx context.Context, id string, reply json.RawMessage) error {
	return s.db.Update(ctx, "storing a reply", func(ctx context.Context, tx *sql.Tx) error {
		if settled, err := database.Changed(ctx, tx, `UPDATE questions SET reply = $1 WHERE id = $2 AND reply = ''`, string(reply), id); settled || err != nil {
			return err
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM questions WHERE id = $1`, id).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return core.Errorf(core.CodeNotFound, "no such question")
		}
		return core.Errorf(core.CodeAlreadyAnswered, "the question has been answered, or has timed out")
	})
}

// ReplyTo returns the reply that SettleQuestion stored, or nil if there is none yet.
func (s *Store) ReplyTo(ctx context.Context, id string) (json.RawMessage, error) {
	var reply string
	err := database.Missing(s.db.Get(ctx, "reading a reply", `SELECT reply FROM questions WHERE id = $1`, []any{id}, &reply), nil)
	if err != nil || reply == "" {
		return nil, err
	}
	return json.RawMessage(reply), nil
}

// DeleteQuestions deletes questions and their replies. Missing questions are not an error.
func (s *Store) DeleteQuestions(ctx context.Context, ids []string) error {
	return s.db.Update(ctx, "deleting questions", func(ctx context.Context, tx *sql.Tx) error {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, `DELETE FROM questions WHERE id = $1`, id); err != nil {
				return err
			}
		}
		return nil
	})
}
