package authtest

import (
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// given keeps some of the secrets that an adapter was given, and looks for them in its errors. It is safe for
// concurrent use.
type given struct {
	mu    sync.Mutex
	kept  secrets
	seen  int
	leak  *kit.Failure
	moved int
}

// keptSecrets is roughly how many secrets are kept, to look for them in what the adapter wrote.
const keptSecrets = 60

// token keeps a token, and looks for it and its parts in the error that the adapter returned for it.
func (l *given) token(what, token string, err error) {
	if len(token) < 16 {
		return
	}
	l.note(what, token)
	if err == nil {
		return
	}
	text := err.Error()
	for i, part := range append(strings.Split(token, "."), token) {
		if len(part) >= 24 && i != 0 && strings.Contains(text, part) {
			l.report(kit.NewFailure(clip(text, 60), "an error without "+what+" or a part of it", sSilent))
		}
	}
}

// error keeps a secret, and looks for it in an error in any encoding.
func (l *given) error(what, secret string, err error) {
	l.note(what, secret)
	if err != nil && kit.Tells(err.Error(), []kit.Secret{{What: what, Text: secret}}) != nil {
		l.report(kit.NewFailure("an error that holds "+what, "an error without it", sSilent))
	}
}

func (l *given) report(f *kit.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leak == nil {
		l.leak = f
	}
}

// note keeps the first secrets. After that, every fiftieth replaces an older one.
func (l *given) note(what, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen++
	var parts secrets
	parts.add(what, text)
	switch {
	case len(l.kept) < keptSecrets:
		l.kept = append(l.kept, parts...)
	case l.seen%50 == 0:
		l.moved = (l.moved + 3) % (keptSecrets - 2)
		copy(l.kept[l.moved:], parts)
	}
}

func (l *given) all() []kit.Secret {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
