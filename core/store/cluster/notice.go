package cluster

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// notice is a message from one server to the others: a change, an event, or a part of a peer
// request.
type notice struct {
	n       int64
	origin  string
	change  core.Change
	owner   string // recipient of an event for one person; subject of a peer request
	payload string // an event's data
}

const (
	kindEvent core.ChangeKind = "event" // Name is the name of the event
	maxEvent                  = 1 << 20 // bytes of an event's data
	pageSize                  = 500     // notices read at a time

	// keepNotices is how long notices are kept. A server that was disconnected for longer detects that it
	// missed some.
	keepNotices = "2 minutes"
)

// writeNotices adds notices, and wakes the servers when the transaction commits. No other server can add notices
// until the commit, so this must be the last statement of the transaction.
func writeNotices(ctx context.Context, tx *sql.Tx, origin string, add []notice) error {
	var last int64
	if err := tx.QueryRowContext(ctx, `UPDATE counters SET n = n + $1 WHERE name = 'notices' RETURNING n`, len(add)).Scan(&last); err != nil {
		return err
	}
	var now int64
	if err := tx.QueryRowContext(ctx, `SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT`).Scan(&now); err != nil {
		return err
	}
	rows := database.Insert{Into: `INSERT INTO notices (n, origin, kind, workspace, name, owner, payload, made_at)`}
	for i, one := range add {
		n := last - int64(len(add)-1-i)
		rows.Add(n, origin, string(one.change.Kind), one.change.Workspace, one.change.Name, one.owner, one.payload, now)
	}
	if err := rows.Exec(ctx, tx); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `SELECT pg_notify('ropewalk', '')`)
	return err
}

// readNotices returns the next notices after a number, and the number to continue from. missed reports whether
// some in between have been deleted.
func readNotices(ctx context.Context, db *database.Database, after int64) (found []notice, next int64, missed bool, err error) {
	var last int64
	if err := db.Get(ctx, "reading the number of notices", `SELECT n FROM counters WHERE name = 'notices'`, nil, &last); err != nil || last == after {
		return nil, after, false, err
	}
	next = after
	err = db.Select(ctx, "reading notices", `SELECT n, origin, kind, workspace, name, owner, payload FROM notices WHERE n > $1 ORDER BY n LIMIT $2`, []any{after, pageSize},
		func(row database.Row) error {
			var one notice
			if err := row.Scan(&one.n, &one.origin, &one.change.Kind, &one.change.Workspace, &one.change.Name, &one.owner, &one.payload); err != nil {
				return err
			}
			missed = missed || one.n != next+1
			next, found = one.n, append(found, one)
			return nil
		})
	if err != nil {
		return nil, after, false, err
	}
	if len(found) == 0 { // already too old, or the database was replaced
		return nil, last, true, nil
	}
	return found, next, missed, nil
}

func eventNotice(e core.Event) (notice, error) {
	payload, err := json.Marshal(e.Data)
	return notice{change: core.Change{Kind: kindEvent, Workspace: e.Workspace, Name: e.Name}, owner: e.Owner, payload: string(payload)}, err
}

func (n notice) event() core.Event {
	return core.Event{Name: n.change.Name, Workspace: n.change.Workspace, Owner: n.owner, Data: json.RawMessage(n.payload)}
}
