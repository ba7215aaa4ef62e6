package static

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// minToken is the minimum length of a plain-text token in bytes: shorter ones can be guessed.
const minToken = 16

// Entry is one token in the file.
type Entry struct {
	Token        string   `yaml:"token"`       // the token itself, or
	TokenSHA256  string   `yaml:"tokenSha256"` // its SHA-256 in hex
	Subject      string   `yaml:"subject"`
	Email        string   `yaml:"email"`
	Name         string   `yaml:"name"`
	OrgRole      string   `yaml:"orgRole"` // owner, admin or member; the default is member
	Organization string   `yaml:"organization"`
	Audiences    []string `yaml:"audiences"` // the default is any
	Scopes       []string `yaml:"scopes"`
	Expires      string   `yaml:"expires"` // RFC 3339; required

	digest  [sha256.Size]byte
	expires time.Time
}

type entries []Entry

// parse parses the file: {tokens: [Entry]}, strict YAML or JSON. Errors name every bad entry by its position,
// but never its contents.
func parse(body []byte) (entries, error) {
	var document struct {
		Tokens entries `yaml:"tokens"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	if err := decoder.Decode(&document); err != nil {
		return nil, decodeError(err)
	}
	var problems []error
	places := map[[sha256.Size]byte]int{}
	for i := range document.Tokens {
		entry := &document.Tokens[i]
		if err := entry.check(); err != nil {
			problems = append(problems, fmt.Errorf("tokens[%d]: %w", i, err))
			continue
		}
		if first, twice := places[entry.digest]; twice {
			problems = append(problems, fmt.Errorf("tokens[%d]: is the same token as tokens[%d]", i, first))
		}
		places[entry.digest] = i
	}
	return document.Tokens, errors.Join(problems...)
}

// decodeError keeps the positions in a YAML error and drops its text, which repeats values.
func decodeError(err error) error {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return errors.New("is neither YAML nor JSON")
	}
	places := make([]string, len(wrong.Errors))
	for i, text := range wrong.Errors {
		place, _, _ := bytes.Cut([]byte(text), []byte(":"))
		places[i] = string(place)
	}
	return fmt.Errorf("has unknown names or wrong types: %v", places)
}

func (e *Entry) check() error {
	switch {
	case (e.Token == "") == (e.TokenSHA256 == ""):
		return errors.New("needs either token or tokenSha256")
	case e.Token != "" && len(e.Token) < minToken:
		return fmt.Errorf("token must have at least %d bytes", minToken)
	case e.Subject == "":
		return errors.New("needs a subject")
	case !slices.Contains([]string{"", "owner", "admin", "member"}, e.OrgRole):
		return errors.New("orgRole must be owner, admin or member")
	}
	if e.Token != "" {
		e.digest = sha256.Sum256([]byte(e.Token))
	} else if n, err := hex.Decode(e.digest[:], []byte(e.TokenSHA256[:min(len(e.TokenSHA256), 2*sha256.Size)])); err != nil || n != sha256.Size || len(e.TokenSHA256) != 2*sha256.Size {
		return errors.New("tokenSha256 must be the 64 hex digits of the token's SHA-256")
	}
	expires, err := time.Parse(time.RFC3339, e.Expires)
	if err != nil {
		return errors.New("expires must be a time such as 2027-01-31T00:00:00Z")
	}
	e.Token, e.expires = "", expires
	return nil
}

// find compares the token with every entry, so that its duration reveals nothing about any of them.
func (all entries) find(token string) (Entry, bool) {
	digest, at := sha256.Sum256([]byte(token)), -1
	for i := range all {
		if subtle.ConstantTimeCompare(digest[:], all[i].digest[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return Entry{}, false
	}
	return all[at], true
}
