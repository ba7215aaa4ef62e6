package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Limits on one person's tasks across all workspaces. Above maxTasks or maxTasksBytes, the oldest tasks that have
// ended are deleted.
const (
	maxOpenTasks  = 50
	maxTasks      = 500
	maxTasksBytes = 64 << 20
)

// deleteExpiredTasks deletes at most $2 tasks that have expired by $1.
const deleteExpiredTasks = `DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= $1 LIMIT $2)`

const (
	openTask    = `status IN ('working', 'input_required')`
	callersTask = `id = $1 AND workspace = $2 AND user_id = $3 AND COALESCE(api_key, '') = $4 AND expires_at > $5`
)

// StartTask stores a new task. It is deleted when it expires, with its API key, with the person, or with the workspace.
// The error is core.CodeLimitReached if the person has too many tasks that have not ended, and core.CodeForbidden if
// one of the three no longer exists.
func (s *Store) StartTask(ctx context.Context, t core.Task) error {
	return s.db.Update(ctx, "storing a task", func(ctx context.Context, tx *sql.Tx) error {
		now := database.Millis(time.Now())
		if _, err := tx.ExecContext(ctx, deleteExpiredTasks, now, purgeBatch); err != nil {
			return err
		}
		var open int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM tasks WHERE user_id = $1 AND `+openTask, t.User).Scan(&open); err != nil {
			return err
		}
		if open >= maxOpenTasks {
			return core.Errorf(core.CodeLimitReached, "you have %d unfinished tasks; wait for some of them, or cancel them", open)
		}
		var key *string
		if t.Key != "" {
			key = &t.Key
		}
		if err := database.Change(ctx, tx, core.Errorf(core.CodeForbidden, "the task was not stored, because its caller or the workspace no longer exists"), `
			INSERT INTO tasks (id, workspace, user_id, api_key, tool, account, app_task, status, message, payload, bytes, holder, held_until,
				created_at, updated_at, expires_at)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT),
				CAST($8 AS TEXT), CAST($9 AS TEXT), CAST($10 AS TEXT), CAST($11 AS BIGINT), CAST($12 AS TEXT), CAST($13 AS BIGINT),
				CAST($14 AS BIGINT), CAST($14 AS BIGINT), CAST($15 AS BIGINT)
			WHERE EXISTS (SELECT 1 FROM users WHERE id = CAST($3 AS TEXT)) AND EXISTS (SELECT 1 FROM workspaces WHERE id = CAST($2 AS TEXT))
				AND (CAST($4 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM api_keys WHERE id = CAST($4 AS TEXT)))`,
			t.ID, t.Workspace, t.User, key, t.Tool, t.Account, clean(t.AppTask), string(t.Status), clean(t.Message), nullableJSON(t.Payload), len(t.Payload),
			t.Holder, database.Millis(t.HeldUntil), database.Millis(t.CreatedAt), database.Millis(t.ExpiresAt)); err != nil {
			return err
		}
		return trimTasks(ctx, tx, t.User)
	})
}

// trimTasks deletes the oldest of a person's ended tasks, as many as exceed the limits.
func trimTasks(ctx context.Context, tx *sql.Tx, user string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM tasks WHERE id IN (SELECT id FROM (
		SELECT id, SUM(bytes) OVER newest AS total, ROW_NUMBER() OVER newest AS number FROM tasks WHERE user_id = $1 AND NOT `+openTask+`
		WINDOW newest AS (ORDER BY created_at DESC, id)) AS mine WHERE total > $2 OR number > $3)`, user, maxTasksBytes, maxTasks)
	return err
}

// callersArgs returns the arguments of callersTask.
func callersArgs(t core.Task) []any {
	return []any{t.ID, t.Workspace, t.User, t.Key, database.Millis(time.Now())}
}

// Task returns a task. ID, Workspace, User and Key of t must match those of the task. Otherwise, or if the task has
// expired, the error is core.CodeNotFound.
func (s *Store) Task(ctx context.Context, t core.Task) (core.Task, error) {
	err := s.db.View(ctx, "reading a task", func(ctx context.Context, tx *sql.Tx) (err error) {
		t, _, err = readTask(tx.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks c WHERE `+callersTask, callersArgs(t)...), t.ID)
		return err
	})
	return t, err
}

const taskColumns = `id, workspace, user_id, COALESCE(api_key, ''), tool, account, app_task, status, message, payload, responses, holder, held_until,
	created_at, updated_at, expires_at`

func readTask(row *sql.Row, id string) (t core.Task, responses json.RawMessage, err error) {
	var payload, answered *string
	var status string
	var held, created, updated, expires int64
	err = row.Scan(&t.ID, &t.Workspace, &t.User, &t.Key, &t.Tool, &t.Account, &t.AppTask, &status, &t.Message, &payload, &answered, &t.Holder, &held,
		&created, &updated, &expires)
	t.Status, t.Payload = core.TaskStatus(status), rawJSON(payload)
	t.HeldUntil, t.CreatedAt = database.FromMillis(held), database.FromMillis(created)
	t.UpdatedAt, t.ExpiresAt = database.FromMillis(updated), database.FromMillis(expires)
	return t, rawJSON(answered), database.Missing(err, core.Errorf(core.CodeNotFound, "there is no task %.80q", id))
}

// HoldTask renews the claim of a task's holder. It returns the task, and removes and returns the responses that have
// arrived, as a JSON object; nil for none. The error is core.CodeNotFound if the task was deleted, has ended, or has
// another holder.
func (s *Store) HoldTask(ctx context.Context, id, holder string, until time.Time) (t core.Task, responses json.RawMessage, err error) {
	err = s.db.UpdateGrouped(ctx, "holding a task", func(ctx context.Context, tx *sql.Tx) (err error) {
		t, responses, err = readTask(tx.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks c WHERE id = $1 AND holder = $2 AND expires_at > $3 AND `+openTask+` `+s.db.LockRow(),
			id, holder, database.Millis(time.Now())), id)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE tasks SET held_until = $2, responses = NULL WHERE id = $1`, id, database.Millis(until))
		return err
	})
	return t, responses, err
}

// ClaimTask makes holder the holder of a task whose holder is gone. It returns false if the task has ended or is held.
func (s *Store) ClaimTask(ctx context.Context, id, holder string, until time.Time) (claimed bool, err error) {
	now := database.Millis(time.Now())
	err = s.db.Update(ctx, "claiming a task", func(ctx context.Context, tx *sql.Tx) (err error) {
		claimed, err = database.Changed(ctx, tx, `UPDATE tasks SET holder = $2, held_until = $3 WHERE id = $1 AND held_until <= $4 AND `+openTask,
			id, holder, database.Millis(until), now)
		return err
	})
	return claimed, err
}

// UpdateTask stores the tool, the account, the AppTask, the state and the HeldUntil of a task for its holder. It does
// nothing if the task has ended or has another holder. Input requests that were answered in the meantime are left out.
func (s *Store) UpdateTask(ctx context.Context, t core.Task) error {
	return s.db.UpdateGrouped(ctx, "updating a task", func(ctx context.Context, tx *sql.Tx) error {
		stored, responses, err := readTask(tx.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks c WHERE id = $1 AND holder = $2 AND `+openTask+` `+s.db.LockRow(), t.ID, t.Holder), t.ID)
		if core.CodeOf(err) == core.CodeNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		next := t
		if next.Status == core.TaskInputRequired {
			if next.Payload, err = withoutMembers(next.Payload, responses); err != nil {
				return err
			}
			if next.Payload == nil {
				next.Status = core.TaskWorking
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE tasks SET app_task = $2, status = $3, message = $4, payload = $5, bytes = $6, held_until = $7, updated_at = $8, tool = $9,
			account = $10 WHERE id = $1`,
			t.ID, clean(next.AppTask), string(next.Status), clean(next.Message), nullableJSON(next.Payload), len(next.Payload), database.Millis(next.HeldUntil), database.Millis(time.Now()),
			next.Tool, next.Account)
		if err == nil && next.Status.Final() {
			err = trimTasks(ctx, tx, stored.User)
		}
		return err
	})
}

// AnswerTask stores responses to a task's input requests for its holder, and removes the requests that they answer.
// Responses to anything else are ignored. See Task for t and the error.
func (s *Store) AnswerTask(ctx context.Context, t core.Task, responses map[string]json.RawMessage) error {
	return s.db.Update(ctx, "answering a task", func(ctx context.Context, tx *sql.Tx) error {
		stored, earlier, err := readTask(tx.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks c WHERE `+callersTask+` `+s.db.LockRow(), callersArgs(t)...), t.ID)
		if err != nil || stored.Status != core.TaskInputRequired {
			return err
		}
		open, err := membersOf(stored.Payload)
		if err != nil {
			return err
		}
		all, err := membersOf(earlier)
		if err != nil {
			return err
		}
		for name, response := range responses {
			if open[name] != nil {
				all[name] = response
			}
		}
		answered, err := json.Marshal(all)
		if err != nil {
			return err
		}
		left, err := withoutMembers(stored.Payload, answered)
		if err != nil {
			return err
		}
		status := core.TaskInputRequired
		if left == nil {
			status = core.TaskWorking
		}
		_, err = tx.ExecContext(ctx, `UPDATE tasks SET status = $2, payload = $3, bytes = $4, responses = $5, updated_at = $6 WHERE id = $1`,
			t.ID, string(status), nullableJSON(left), len(left), string(answered), database.Millis(time.Now()))
		return err
	})
}

// CancelTask marks a task as cancelled, unless it has ended. Its holder notices that when it renews its claim. See Task
// for t and the error.
func (s *Store) CancelTask(ctx context.Context, t core.Task) error {
	return s.db.Update(ctx, "cancelling a task", func(ctx context.Context, tx *sql.Tx) error {
		stored, _, err := readTask(tx.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks c WHERE `+callersTask+` `+s.db.LockRow(), callersArgs(t)...), t.ID)
		if err != nil || stored.Status.Final() {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE tasks SET status = 'cancelled', message = '', payload = NULL, bytes = 0, responses = NULL, updated_at = $2 WHERE id = $1`,
			t.ID, database.Millis(time.Now()))
		return err
	})
}

// membersOf returns the members of a JSON object. nil has none.
func membersOf(object json.RawMessage) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(object) == 0 {
		return members, nil
	}
	err := json.Unmarshal(object, &members)
	return members, err
}

// withoutMembers returns a JSON object without the members that another object has. It returns nil if no member is
// left.
func withoutMembers(object, others json.RawMessage) (json.RawMessage, error) {
	members, err := membersOf(object)
	if err != nil {
		return nil, err
	}
	gone, err := membersOf(others)
	if err != nil {
		return nil, err
	}
	for name := range gone {
		delete(members, name)
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}
