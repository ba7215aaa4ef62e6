package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// notice is what one server tells the others: that something was changed, or an event.
type notice struct {
	n       int64
	origin  string
	change  core.Change
	payload string // an event's data
}

const kindEvent core.ChangeKind = "event" // whose Name is the event's

// keepNotices is how long notices can be read. A server that was away for longer is told that it
// missed some.
const keepNotices = "2 minutes"

// writeNotices adds notices to those of the database and wakes the servers when the transaction
// commits. From here to the commit no other server can add any: do it last.
func writeNotices(ctx context.Context, tx *sql.Tx, origin string, add []notice) error {
	var last int64
	if err := tx.QueryRowContext(ctx, `UPDATE counters SET n = n + $1 WHERE name = 'notices' RETURNING n`, len(add)).Scan(&last); err != nil {
		return err
	}
	var now int64
	if err := tx.QueryRowContext(ctx, `SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT`).Scan(&now); err != nil {
		return err
	}
	rows := inserting{into: `INSERT INTO notices (n, origin, kind, workspace, name, payload, made_at)`}
	for i, one := range add {
		n := last - int64(len(add)-1-i)
		rows.add(n, origin, string(one.change.Kind), one.change.Workspace, one.change.Name, one.payload, now)
	}
	if err := rows.run(ctx, tx); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `SELECT pg_notify('ropewalk', '')`)
	return err
}

// readNotices returns the next notices after a number, and the number to go on from. missed tells
// that some in between are gone.
func readNotices(ctx context.Context, db *sql.DB, after int64) (found []notice, next int64, missed bool, err error) {
	var last int64
	if err := db.QueryRowContext(ctx, `SELECT n FROM counters WHERE name = 'notices'`).Scan(&last); err != nil || last == after {
		return nil, after, false, err
	}
	const page = 500
	rows, err := db.QueryContext(ctx, `SELECT n, origin, kind, workspace, name, payload FROM notices WHERE n > $1 ORDER BY n LIMIT $2`, after, page)
	if err != nil {
		return nil, after, false, err
	}
	defer func() { _ = rows.Close() }()
	next = after
	for rows.Next() {
		var one notice
		if err := rows.Scan(&one.n, &one.origin, &one.change.Kind, &one.change.Workspace, &one.change.Name, &one.payload); err != nil {
			return nil, after, false, err
		}
		missed = missed || one.n != next+1
		next, found = one.n, append(found, one)
	}
	if err := rows.Err(); err != nil {
		return nil, after, false, err
	}
	if len(found) == 0 { // too old already, or the database was exchanged
		return nil, last, true, nil
	}
	return found, next, missed, nil
}

func eventNotice(e core.Event) (notice, error) {
	payload, err := json.Marshal(e.Data)
	return notice{change: core.Change{Kind: kindEvent, Workspace: e.Workspace, Name: e.Name}, payload: string(payload)}, err
}

func (n notice) event() core.Event {
	return core.Event{Name: n.change.Name, Workspace: n.change.Workspace, Data: json.RawMessage(n.payload)}
}
