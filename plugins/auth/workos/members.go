package workos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth/internal/relyingparty"
)

const (
	answerLimit = 1 << 20
	memberFresh = 30 * time.Second // how long a result is used without another request
	memberKeep  = 5 * time.Minute  // how long a result stays valid while WorkOS does not respond
	memberLimit = 10_000
)

// members asks WorkOS about memberships in one organization.
type members struct {
	client       *http.Client
	address      string
	key          plugins.Secret
	organization string
	log          hclog.Logger
	inFlight     singleflight.Group
	life         context.Context
	end          context.CancelFunc

	mu    sync.Mutex
	known map[string]member
}

type member struct {
	role string
	at   time.Time
}

func newMembers(apiURL string, key plugins.Secret, organization string, log hclog.Logger) *members {
	life, end := context.WithCancel(context.Background())
	return &members{
		client:  relyingparty.NewClient(relyingparty.Reach{Loopback: relyingparty.OnLoopback(apiURL)}),
		address: strings.TrimSuffix(apiURL, "/") + "/user_management/organization_memberships",
		key:     key, organization: organization, log: log, life: life, end: end, known: map[string]member{},
	}
}

func (m *members) close() {
	m.end()
	m.client.CloseIdleConnections()
}

// role returns the user's highest role in the organization, or plugins.ErrUnauthenticated if the user is not an active
// member. If WorkOS does not respond, the last result stays valid for memberKeep. Without one, the error is
// plugins.ErrUnavailable.
func (m *members) role(ctx context.Context, user string) (string, error) {
	last, ok := m.recall(user)
	if ok && time.Since(last.at) < memberFresh {
		return last.role, nil
	}
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case answer := <-m.inFlight.DoChan(user, func() (any, error) { return m.ask(user) }):
		if err = answer.Err; err == nil {
			return m.learn(user, answer.Val.([]membership))
		}
	}
	if ok && time.Since(last.at) < memberKeep {
		m.log.Warn("could not get the membership from WorkOS; the last result is used", "error", err)
		return last.role, nil
	}
	return "", fmt.Errorf("%w: could not get the membership from WorkOS: %w", plugins.ErrUnavailable, err)
}

func (m *members) recall(user string) (member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.known[user]
	return last, ok
}

func (m *members) learn(user string, found []membership) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range found {
		if f.UserID != user || f.OrganizationID != m.organization || f.Status != "active" {
			continue
		}
		if len(m.known) >= memberLimit {
			clear(m.known)
		}
		m.known[user] = member{role: f.rank(), at: time.Now()}
		return f.rank(), nil
	}
	delete(m.known, user)
	return "", fmt.Errorf("%w: the user is not an active member of the organization", plugins.ErrUnauthenticated)
}

// membership is an entry in WorkOS's list: https://workos.com/docs/reference/authkit/organization-membership.
type membership struct {
	UserID         string `json:"user_id"`
	OrganizationID string `json:"organization_id"`
	Status         string `json:"status"`
	Role           role   `json:"role"`
	Roles          []role `json:"roles"`
}

type role struct {
	Slug string `json:"slug"`
}

// rank returns the highest of the membership's roles that the server knows; any other counts as a member.
func (f membership) rank() string {
	slugs := []string{f.Role.Slug, "member"}
	for _, r := range f.Roles {
		slugs = append(slugs, r.Slug)
	}
	return relyingparty.Rank(slugs)
}

// ask requests the user's active memberships (WorkOS lists only active ones by default). It does not use a caller's
// context, because several callers may wait for the result.
func (m *members) ask(user string) ([]membership, error) {
	query := url.Values{"user_id": {user}, "organization_id": {m.organization}}
	body, err := relyingparty.Fetch(m.life, m.client, m.address+"?"+query.Encode(), m.key.Reveal(), answerLimit)
	if err != nil {
		return nil, err
	}
	var list *struct {
		Data []membership `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list == nil || list.Data == nil {
		return nil, fmt.Errorf("%s returned something other than a list", m.address)
	}
	return list.Data, nil
}
