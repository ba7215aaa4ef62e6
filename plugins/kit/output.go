package kit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Output collects what an implementation writes: its log lines and what it prints. It is safe for concurrent use.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p to the output.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String returns everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Secret is a string that an implementation was given and that must not appear in its output.
type Secret struct {
	What string // "the login code"
	Text string
}

// shortest is the minimum length in bytes of a secret to look for: a shorter one may occur by chance.
const shortest = 16

// Tells returns an error if text contains one of the secrets: unencoded, in base64 (possibly as part of something
// longer), in hex, with URL or JSON escapes, or as a list of bytes. The error does not repeat the secret.
func Tells(text string, secrets []Secret) error {
	readings := readingsOf(text)
	for _, s := range secrets {
		if len(s.Text) < shortest {
			continue
		}
		for _, form := range formsOf(s.Text) {
			for _, reading := range readings {
				if strings.Contains(reading, form.text) {
					return fmt.Errorf("found %s%s", s.What, form.how)
				}
			}
		}
	}
	return nil
}

var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\\u00[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}|\\/`)

// unescaped decodes the escapes of URLs, of JSON and of string literals.
func unescaped(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		if escape == `\/` {
			return "/"
		}
		b, _ := strconv.ParseUint(escape[len(escape)-2:], 16, 8) // the expression does not match anything else
		return string([]byte{byte(b)})
	})
}

// readingsOf returns the ways in which text may be read: with escapes decoded once and twice, with line breaks
// removed, and in lower case for hex.
func readingsOf(text string) []string {
	once := unescaped(text)
	all := []string{text, once, unescaped(once), strings.NewReplacer("\r", "", "\n", "", `\r`, "", `\n`, "").Replace(text)}
	return append(all, strings.ToLower(all[3]))
}

// form is one way to write a secret.
type form struct{ text, how string }

func formsOf(secret string) []form {
	all := []form{{secret, ""}, {hex.EncodeToString([]byte(secret)), " in hex"}}
	for _, list := range []string{" ", ", ", ","} {
		all = append(all, form{strings.ReplaceAll(strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]"), " ", list), " as a list of bytes"})
	}
	for before := range 3 { // how many bytes of a group of three come before the secret
		raw := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		raw = raw[[]int{0, 2, 3}[before]:]
		if (before+len(secret))%3 != 0 {
			raw = raw[:len(raw)-1] // this character also depends on what follows
		}
		all = append(all, form{raw, " in base64"}, form{strings.NewReplacer("+", "-", "/", "_").Replace(raw), " in base64"})
	}
	return all
}
