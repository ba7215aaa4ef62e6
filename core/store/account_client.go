package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

func placeOf(r core.ClientRegistration) string {
	return seal.AboutClient(r.Workspace, r.App, r.Issuer, r.RedirectURI)
}

// OAuthClient returns the client for a registration, or core.CodeNotFound.
func (s *Store) OAuthClient(ctx context.Context, r core.ClientRegistration) (core.OAuthClient, error) {
	var record string
	err := database.Missing(s.db.Get(ctx, "reading a registered client", `SELECT record FROM account_clients WHERE workspace = $1 AND app = $2 AND issuer = $3 AND redirect_uri = $4`,
		[]any{r.Workspace, r.App, r.Issuer, r.RedirectURI}, &record), core.Errorf(core.CodeNotFound, "no client is registered"))
	var c client
	if err == nil {
		var plain []byte
		if plain, err = s.keys.Load().Open(record, placeOf(r)); err == nil {
			err = json.Unmarshal(plain, &c)
		}
	}
	return c.client(), err
}

// PutOAuthClient stores the client for a registration, and replaces any existing one.
func (s *Store) PutOAuthClient(ctx context.Context, r core.ClientRegistration, c core.OAuthClient) error {
	raw, err := json.Marshal(toClient(c))
	if err != nil {
		return err
	}
	return s.db.Exec(ctx, "storing a registered client", `INSERT INTO account_clients (workspace, app, issuer, redirect_uri, record) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace, app, issuer, redirect_uri) DO UPDATE SET record = excluded.record`,
		r.Workspace, r.App, r.Issuer, r.RedirectURI, s.keys.Load().Seal(raw, placeOf(r)))
}

// DeleteOAuthClient deletes a client that the authorization server no longer recognizes. If r has no redirect URI, it
// deletes the clients for all redirect URIs.
func (s *Store) DeleteOAuthClient(ctx context.Context, r core.ClientRegistration) error {
	return s.db.Exec(ctx, "deleting a registered client", `DELETE FROM account_clients WHERE workspace = $1 AND app = $2 AND issuer = $3 AND ($4 = '' OR redirect_uri = $4)`,
		r.Workspace, r.App, r.Issuer, r.RedirectURI)
}

// ClaimRevocations returns the tokens of at most limit accounts that are due to be revoked. No server gets them again until
// retry has passed.
func (s *Store) ClaimRevocations(ctx context.Context, limit int, retry time.Duration) (due []core.AccountRevocation, err error) {
	err = s.db.Update(ctx, "claiming revocations", func(ctx context.Context, tx *sql.Tx) error {
		now := time.Now()
		due, err = database.Collect(ctx, tx, `UPDATE account_revocations SET attempts = attempts + 1, due_at = $1 WHERE id IN (
			SELECT id FROM account_revocations WHERE due_at <= $2 ORDER BY due_at LIMIT $3) AND due_at <= $2 RETURNING id, record, attempts, unlinked_at`,
			[]any{database.Millis(now.Add(retry)), database.Millis(now), limit}, func(row database.Row) (p core.AccountRevocation, err error) {
				var record string
				var unlinked int64
				if err := row.Scan(&p.Account, &record, &p.Attempts, &unlinked); err != nil {
					return p, err
				}
				p.UnlinkedAt = database.FromMillis(unlinked)
				p.Grant, err = s.openedGrant(p.Account, record)
				return p, err
			})
		return err
	})
	return due, err
}

// RevocationDone deletes the tokens of an unlinked account.
func (s *Store) RevocationDone(ctx context.Context, account string) error {
	return s.db.Exec(ctx, "deleting a revocation", `DELETE FROM account_revocations WHERE id = $1`, account)
}

// AppLists returns an app's published lists and the account that they came from, or core.CodeNotFound.
func (s *Store) AppLists(ctx context.Context, workspace, app string) (lists core.AppLists, account string, err error) {
	var record string
	err = s.db.Get(ctx, "reading the published lists of an app", `SELECT account, record FROM account_lists WHERE workspace = $1 AND app = $2`, []any{workspace, app}, &account, &record)
	if err == nil {
		err = json.Unmarshal([]byte(record), &lists)
	}
	return lists, account, database.Missing(err, core.Errorf(core.CodeNotFound, "app %s has no published lists", app))
}

// PutAppLists stores an account's lists as the app's published lists, and announces them to peer
// servers if they have changed.
func (s *Store) PutAppLists(ctx context.Context, workspace, app, account string, lists core.AppLists) error {
	record, err := json.Marshal(lists)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "storing the published lists of an app", func(ctx context.Context, tx *sql.Tx) error {
		changed, err := database.Changed(ctx, tx, `INSERT INTO account_lists (workspace, app, account, record) VALUES ($1, $2, $3, $4)
			ON CONFLICT (workspace, app) DO UPDATE SET account = excluded.account, record = excluded.record
			WHERE account_lists.account <> excluded.account OR account_lists.record <> excluded.record`, workspace, app, account, string(record))
		if err != nil || !changed {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeAccount, workspace, "")
	})
}

// AccountLists returns the lists that an app last sent to an account, or to each of its accounts if account is "". The
// keys are account ids.
func (s *Store) AccountLists(ctx context.Context, workspace, app, account string) (map[string]core.AppLists, error) {
	all := map[string]core.AppLists{}
	err := s.db.Select(ctx, "reading the lists of an app's accounts", `SELECT l.account, l.record FROM account_own_lists l JOIN accounts a ON a.id = l.account WHERE a.workspace = $1 AND a.app = $2 AND ($3 = '' OR a.id = $3)`,
		[]any{workspace, app, account}, func(row database.Row) error {
			var account, record string
			var lists core.AppLists
			err := row.Scan(&account, &record)
			if err == nil {
				err = json.Unmarshal([]byte(record), &lists)
			}
			all[account] = lists
			return err
		})
	return all, err
}

// PutAccountLists stores the lists that an app sent to an account, and announces them to peer servers if they have
// changed. It does nothing if the account no longer exists.
func (s *Store) PutAccountLists(ctx context.Context, a core.Account, lists core.AppLists) error {
	record, err := json.Marshal(lists)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "storing the lists of an account", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := s.findAccount(ctx, tx, a.ID, s.db.LockRow()); core.CodeOf(err) == core.CodeNotFound {
			return nil
		} else if err != nil {
			return err
		}
		changed, err := database.Changed(ctx, tx, `INSERT INTO account_own_lists (account, record) VALUES ($1, $2)
			ON CONFLICT (account) DO UPDATE SET record = excluded.record WHERE account_own_lists.record <> excluded.record`, a.ID, string(record))
		if err != nil || !changed {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeAccount, a.Workspace, a.ID)
	})
}
