package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// keepQuestions is how long a question is kept past its time that nobody forgot: its server was killed.
const keepQuestions = time.Hour

// PutQuestion keeps a question that a run of this server asks, for as long as the run goes on.
func (s *Store) PutQuestion(ctx context.Context, q core.Question) error {
	return s.change(ctx, "keeping a question", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM questions WHERE open_until < $1`, millis(time.Now().Add(-keepQuestions))); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO questions (id, workspace, owner, form, open_until) VALUES ($1, $2, $3, $4, $5)`,
			q.ID, q.Workspace, q.Owner, string(q.Schema), millis(q.Until))
		return err
	})
}

// Question returns a question that a run of any server asks; core.CodeNotFound when there is none.
func (s *Store) Question(ctx context.Context, id string) (core.Question, error) {
	q, form, until := core.Question{ID: id}, "", int64(0)
	err := s.read.QueryRowContext(ctx, `SELECT workspace, owner, form, open_until FROM questions WHERE id = $1`, id).
		Scan(&q.Workspace, &q.Owner, &form, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return q, core.Errorf(core.CodeNotFound, "there is no such question")
	}
	if err != nil {
		return q, fmt.Errorf("reading a question: %w", explain(err))
	}
	if form != "" {
		q.Schema = json.RawMessage(form)
	}
	q.Until = fromMillis(until)
	return q, nil
}

// SettleQuestion keeps the reply to a question, if it is the first: core.CodeAlreadyAnswered when it
// is not, core.CodeNotFound when there is no such question.
func (s *Store) SettleQuestion(ctx context.Context, id string, reply json.RawMessage) error {
	return s.change(ctx, "keeping a reply", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE questions SET reply = $1 WHERE id = $2 AND reply = ''`, string(reply), id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n > 0 || err != nil {
			return err
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM questions WHERE id = $1`, id).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return core.Errorf(core.CodeNotFound, "there is no such question")
		}
		return core.Errorf(core.CodeAlreadyAnswered, "the question has been answered, or its time is over")
	})
}

// ReplyTo returns the reply that SettleQuestion kept, nil when there is none yet.
func (s *Store) ReplyTo(ctx context.Context, id string) (json.RawMessage, error) {
	var reply string
	err := s.read.QueryRowContext(ctx, `SELECT reply FROM questions WHERE id = $1`, id).Scan(&reply)
	if errors.Is(err, sql.ErrNoRows) || err == nil && reply == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a reply: %w", explain(err))
	}
	return json.RawMessage(reply), nil
}

// ForgetQuestions removes questions with their replies. Those that are not there are no error.
func (s *Store) ForgetQuestions(ctx context.Context, ids []string) error {
	return s.change(ctx, "forgetting questions", func(tx *sql.Tx) error {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, `DELETE FROM questions WHERE id = $1`, id); err != nil {
				return err
			}
		}
		return nil
	})
}
