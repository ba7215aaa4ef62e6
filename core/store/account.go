package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// grant is the stored form of a core.Grant, before encryption. It is the only record that contains the tokens themselves.
type grant struct {
	Client       client    `json:"client"`
	AccessToken  string    `json:"accessToken"`
	RefreshToken string    `json:"refreshToken,omitempty"`
	ProofKey     string    `json:"proofKey,omitempty"`
	TokenURL     string    `json:"tokenUrl"`
	RevokeURL    string    `json:"revokeUrl,omitempty"`
	Resource     string    `json:"resource,omitempty"`
	Private      bool      `json:"private,omitempty"`
	RenewedAt    time.Time `json:"renewedAt"`
}

type client struct {
	ID        string    `json:"id"`
	Secret    string    `json:"secret,omitempty"`
	Method    string    `json:"method,omitempty"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

func toClient(c core.OAuthClient) client {
	return client{c.ID, c.Secret.Reveal(), c.Method, c.ExpiresAt}
}

func (c client) client() core.OAuthClient {
	return core.OAuthClient{ID: c.ID, Secret: core.Secret(c.Secret), Method: c.Method, ExpiresAt: c.ExpiresAt}
}

// sealedGrant returns the encrypted form of an account's grant. If there is no key, the error is core.CodeNotConfigured.
func (s *Store) sealedGrant(id string, g core.Grant) (string, error) {
	if !s.Encrypts() {
		return "", core.Errorf(core.CodeNotConfigured, "account tokens are stored only if they can be encrypted, and this server has no key: run `ropewalk encryption new-key > FILE` with a file outside its home, set storage.keyFile to that file, and restart the server")
	}
	raw, err := json.Marshal(grant{toClient(g.Client), g.AccessToken.Reveal(), g.RefreshToken.Reveal(), g.ProofKey.Reveal(), g.TokenURL, g.RevokeURL, g.Resource, g.Private, g.RenewedAt})
	if err != nil {
		return "", err
	}
	return s.keys.Load().Seal(raw, seal.AboutAccount(id)), nil
}

func (s *Store) openedGrant(id, record string) (core.Grant, error) {
	plain, err := s.keys.Load().Open(record, seal.AboutAccount(id))
	if err != nil {
		return core.Grant{}, fmt.Errorf("account %s: %w", id, err)
	}
	var g grant
	if err := json.Unmarshal(plain, &g); err != nil {
		return core.Grant{}, fmt.Errorf("account %s: %w", id, err)
	}
	return core.Grant{
		Client: g.Client.client(), AccessToken: core.Secret(g.AccessToken), RefreshToken: core.Secret(g.RefreshToken),
		ProofKey: core.Secret(g.ProofKey), TokenURL: g.TokenURL, RevokeURL: g.RevokeURL, Resource: g.Resource, Private: g.Private, RenewedAt: g.RenewedAt,
	}, nil
}

// Encrypts reports whether records that contain secrets are stored encrypted.
func (s *Store) Encrypts() bool { return s.keys.Load() != nil }

const selectAccounts = `SELECT c.id, c.workspace, c.owner, c.app, c.name, c.issuer, c.state, c.scopes, c.is_default <> 0, c.record, c.linked_at, c.expires_at FROM accounts c`

func (s *Store) scanAccount(row database.Row) (a core.Account, err error) {
	var scopes, record string
	var linked, expires int64
	if err := row.Scan(&a.ID, &a.Workspace, &a.Owner, &a.App, &a.Name, &a.Issuer, &a.State, &scopes, &a.Default, &record, &linked, &expires); err != nil {
		return a, err
	}
	a.Scopes, a.LinkedAt, a.ExpiresAt = strings.Fields(scopes), database.FromMillis(linked), optionalTime(expires)
	a.Grant, err = s.openedGrant(a.ID, record)
	return a, err
}

// LinkAccount stores an account with its grant, and returns it with its id. An existing account with the same owner,
// app and name keeps its id and gets the new grant. Its old grant is kept for ClaimRevocations, unless revoking it
// could also invalidate the new one (core.Account.SharesGrant). An owner's first account for an app becomes the default. The
// error is core.CodeNotFound if the app is not installed, and core.CodeLimitReached if the owner already has
// core.MaxAccounts for it.
func (s *Store) LinkAccount(ctx context.Context, a core.Account) (core.Account, error) {
	err := s.db.Update(ctx, "linking an account", func(ctx context.Context, tx *sql.Tx) error {
		// The app must still exist at the end of the transaction, or its deletion would leave the account behind.
		if _, err := s.findInstallation(ctx, tx, a.Workspace, a.App, s.db.LockRow()); err != nil {
			return err
		}
		if err := s.mayOwnAccount(ctx, tx, a); err != nil {
			return err
		}
		before, err := s.scanAccount(tx.QueryRowContext(ctx, selectAccounts+` WHERE c.workspace = $1 AND c.owner = $2 AND c.app = $3 AND c.name = $4 `+s.db.LockRow(),
			a.Workspace, a.Owner, a.App, a.Name))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			a.ID = newID("acc_")
			var others int
			err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM accounts WHERE workspace = $1 AND owner = $2 AND app = $3`, a.Workspace, a.Owner, a.App).Scan(&others)
			if a.Default = others == 0; err == nil && others >= core.MaxAccounts {
				err = core.TooManyAccounts(a.App)
			}
		case err == nil:
			a.ID, a.Default = before.ID, before.Default
			if !a.SharesGrant(before) {
				err = s.keepForRevocation(ctx, tx, before.Grant)
			}
		}
		if err != nil {
			return err
		}
		record, err := s.sealedGrant(a.ID, a.Grant)
		if err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, `
			INSERT INTO accounts (id, workspace, owner, app, name, issuer, state, scopes, is_default, record, linked_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (workspace, owner, app, name) DO UPDATE SET issuer = excluded.issuer, state = excluded.state, scopes = excluded.scopes,
				record = excluded.record, linked_at = excluded.linked_at, expires_at = excluded.expires_at`,
			a.ID, a.Workspace, a.Owner, a.App, a.Name, a.Issuer, string(a.State), strings.Join(a.Scopes, " "), flag(a.Default), record,
			database.Millis(a.LinkedAt), optionalMillis(a.ExpiresAt)); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeAccount, a.Workspace, a.ID)
	})
	return a, err
}

// mayOwnAccount returns core.CodeForbidden if the owner of an account is not a member of its workspace. The
// membership must still exist at the end of the transaction, or its deletion would leave the account behind.
func (s *Store) mayOwnAccount(ctx context.Context, tx *sql.Tx, a core.Account) error {
	if a.Owner == "" {
		return nil
	}
	var member int
	err := tx.QueryRowContext(ctx, `SELECT 1 FROM members c WHERE c.workspace = $1 AND c.user_id = $2 `+s.db.LockRow(), a.Workspace, a.Owner).Scan(&member)
	return database.Missing(err, core.Errorf(core.CodeForbidden, "the account was not linked, because its owner is not a member of the workspace"))
}

// optionalMillis is like database.Millis, but returns 0 for the zero time.
func optionalMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return database.Millis(t)
}

// Account returns an account, or core.CodeNotFound.
func (s *Store) Account(ctx context.Context, id string) (a core.Account, err error) {
	err = s.db.Read(ctx, "reading an account", func(ctx context.Context, q database.Querier) (err error) {
		a, err = s.findAccount(ctx, q, id, "")
		return err
	})
	return a, err
}

func (s *Store) findAccount(ctx context.Context, q database.Querier, id, lock string) (core.Account, error) {
	a, err := s.scanAccount(q.QueryRowContext(ctx, selectAccounts+` WHERE c.id = $1 `+lock, id))
	return a, database.Missing(err, core.Errorf(core.CodeNotFound, "no such account"))
}

// Accounts returns the accounts of a workspace, sorted by app and name.
func (s *Store) Accounts(ctx context.Context, workspace string) ([]core.Account, error) {
	return database.List(ctx, s.db, "reading the accounts", selectAccounts+` WHERE c.workspace = $1 ORDER BY c.app, c.name, c.id`, []any{workspace}, s.scanAccount)
}

// RenewAccount calls renew to change the grant, the state and the scopes of an account. No other server of the cluster
// can renew the account at the same time, because renew may use up a single-use token. Calls on the same server must
// not overlap for one account. renew reports whether it changed something. Its error is returned, but only after its
// changes are stored. The error is core.CodeNotFound if the account does not exist.
func (s *Store) RenewAccount(ctx context.Context, id string, renew func(ctx context.Context, a *core.Account) (changed bool, err error)) (a core.Account, err error) {
	if s.db.Kind() == database.SQLite { // SQLite allows only one writing transaction at a time, and renew waits for the network
		if a, err = s.Account(ctx, id); err != nil {
			return a, err
		}
		changed, failed := renew(ctx, &a)
		if changed {
			err = s.putGrant(context.WithoutCancel(ctx), a)
		}
		return s.renewed(ctx, a, failed, err)
	}
	var changed bool
	var failed error
	err = s.db.UpdateLong(ctx, "renewing an account", func(ctx context.Context, tx *sql.Tx) error {
		if a, err = s.findAccount(ctx, tx, id, s.db.LockRow()); err != nil {
			return err
		}
		if changed, failed = renew(ctx, &a); !changed {
			return nil
		}
		_, err := s.updateGrant(ctx, tx, a) // the row is locked, so it has not changed
		return err
	})
	if err != nil && changed { // the lock was lost with the connection, but the old token is used up
		err = s.putGrant(context.WithoutCancel(ctx), a)
	}
	return s.renewed(ctx, a, failed, err)
}

// errReplaced means that an account was relinked or unlinked while it was being renewed without a lock.
var errReplaced = errors.New("the account was relinked or unlinked in the meantime")

// renewed returns the result of RenewAccount. If the account was relinked in the meantime, the new login takes
// precedence over the renewed one.
func (s *Store) renewed(ctx context.Context, a core.Account, failed, err error) (core.Account, error) {
	if errors.Is(err, errReplaced) {
		return s.Account(ctx, a.ID)
	}
	return a, errors.Join(failed, err)
}

// putTries is how many times putGrant tries to store a renewed grant. If the grant is not stored, it is lost, because
// the old tokens no longer work.
const putTries = 5

// putGrant stores the grant, the state and the scopes of an account. The error is errReplaced if there is a newer
// login.
func (s *Store) putGrant(ctx context.Context, a core.Account) (err error) {
	for try := range putTries {
		var stored bool
		if err = s.db.Update(ctx, "storing a renewed account", func(ctx context.Context, tx *sql.Tx) (err error) {
			stored, err = s.updateGrant(ctx, tx, a)
			return err
		}); err == nil && !stored {
			return errReplaced
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try+1) * time.Second):
		}
	}
	return err
}

// keepForRevocation stores a grant that no account uses, for ClaimRevocations.
func (s *Store) keepForRevocation(ctx context.Context, tx *sql.Tx, g core.Grant) error {
	id := newID("acc_") // the account's own id may be needed for its current grant
	record, err := s.sealedGrant(id, g)
	if err != nil {
		return err
	}
	now := database.Millis(time.Now())
	_, err = tx.ExecContext(ctx, `INSERT INTO account_revocations (id, record, attempts, due_at, unlinked_at) VALUES ($1, $2, 0, $3, $4)`, id, record, now, now)
	return err
}

// updateGrant stores the grant, the state and the scopes of an account, unless it was relinked or unlinked since a
// was read. In that case the tokens are not used, but kept for ClaimRevocations, unless revoking them could also
// invalidate the new login.
func (s *Store) updateGrant(ctx context.Context, tx *sql.Tx, a core.Account) (stored bool, err error) {
	record, err := s.sealedGrant(a.ID, a.Grant)
	if err != nil {
		return false, err
	}
	stored, err = database.Changed(ctx, tx, `UPDATE accounts SET record = $1, state = $2, scopes = $3, expires_at = $4 WHERE id = $5 AND linked_at = $6`,
		record, string(a.State), strings.Join(a.Scopes, " "), optionalMillis(a.ExpiresAt), a.ID, database.Millis(a.LinkedAt))
	switch {
	case err != nil:
		return false, err
	case stored:
		return true, s.notifyPeers(ctx, tx, core.ChangeAccount, a.Workspace, a.ID)
	}
	now, err := s.findAccount(ctx, tx, a.ID, "")
	switch {
	case err != nil && core.CodeOf(err) != core.CodeNotFound:
		return false, err
	case a.State != core.AccountActive, err == nil && a.SharesGrant(now): // if the state is not active, a still has the old tokens
		return false, nil
	}
	return false, s.keepForRevocation(ctx, tx, a.Grant)
}

// ChangeAccount changes an account. The error is core.CodeNotFound if there is no such account, and core.CodeConflict
// if the owner already has another account with the new name for the app.
func (s *Store) ChangeAccount(ctx context.Context, id string, change core.AccountChange) (a core.Account, err error) {
	err = s.db.Update(ctx, "changing an account", func(ctx context.Context, tx *sql.Tx) error {
		if a, err = s.findAccount(ctx, tx, id, s.db.LockRow()); err != nil {
			return err
		}
		if change.Name != nil && *change.Name != a.Name {
			var others int
			if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM accounts WHERE workspace = $1 AND owner = $2 AND app = $3 AND name = $4`,
				a.Workspace, a.Owner, a.App, *change.Name).Scan(&others); err != nil {
				return err
			}
			if others > 0 {
				return core.Errorf(core.CodeConflict, "another account for %s is called %q", a.App, *change.Name)
			}
			a.Name = *change.Name
			if _, err := tx.ExecContext(ctx, `UPDATE accounts SET name = $1 WHERE id = $2`, a.Name, id); err != nil {
				return err
			}
		}
		if change.Default {
			a.Default = true
			if _, err := tx.ExecContext(ctx, `UPDATE accounts SET is_default = CASE WHEN id = $1 THEN 1 ELSE 0 END WHERE workspace = $2 AND owner = $3 AND app = $4`,
				id, a.Workspace, a.Owner, a.App); err != nil {
				return err
			}
			return s.notifyPeers(ctx, tx, core.ChangeAccount, a.Workspace, "") // the account that was the default changed as well
		}
		return s.notifyPeers(ctx, tx, core.ChangeAccount, a.Workspace, a.ID)
	})
	return a, err
}

// UnlinkAccount deletes an account, and keeps its tokens for ClaimRevocations. The error is core.CodeNotFound if there
// is no such account.
func (s *Store) UnlinkAccount(ctx context.Context, id string) (a core.Account, err error) {
	err = s.db.Update(ctx, "unlinking an account", func(ctx context.Context, tx *sql.Tx) error {
		if a, err = s.findAccount(ctx, tx, id, s.db.LockRow()); err != nil {
			return err
		}
		if err := s.unlink(ctx, tx, `id = $1`, id); err != nil || !a.Default {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE accounts SET is_default = 1 WHERE id = (
			SELECT id FROM accounts WHERE workspace = $1 AND owner = $2 AND app = $3 ORDER BY linked_at, id LIMIT 1)`, a.Workspace, a.Owner, a.App)
		return err
	})
	return a, err
}

// unlink deletes the accounts selected by a condition, with their pins, and keeps their tokens until they are revoked.
func (s *Store) unlink(ctx context.Context, tx *sql.Tx, condition string, args ...any) error {
	now := database.Millis(time.Now())
	times := fmt.Sprintf("$%d, $%d", len(args)+1, len(args)+2)
	if _, err := tx.ExecContext(ctx, `INSERT INTO account_revocations (id, record, attempts, due_at, unlinked_at)
		SELECT id, record, 0, `+times+` FROM accounts WHERE `+condition, append(args[:len(args):len(args)], now, now)...); err != nil {
		return err
	}
	unlinked, err := database.Collect(ctx, tx, `SELECT workspace, app, id FROM accounts WHERE `+condition, args, func(row database.Row) (k core.PinKey, err error) {
		return k, row.Scan(&k.Workspace, &k.App, &k.Account)
	})
	for _, k := range unlinked {
		if _, e := tx.ExecContext(ctx, `DELETE FROM pins WHERE workspace = $1 AND app = $2 AND version LIKE '%' || $3`, k.Workspace, k.App, pinVersion(k)); e != nil {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return err
	}
	changed, err := database.Changed(ctx, tx, `DELETE FROM accounts WHERE `+condition, args...)
	if err != nil || !changed {
		return err
	}
	return s.notifyPeers(ctx, tx, core.ChangeAccount, "", "")
}
