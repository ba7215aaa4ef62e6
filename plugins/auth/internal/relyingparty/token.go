package relyingparty

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lestrrat-go/jwx/v2/jws"
)

const maxToken = 64 << 10

// token is a compact JWS that has been parsed but not verified.
type token struct {
	compact string
	kid     string
	alg     string
	claims  Claims
}

// readToken parses a token and rejects what no key could make valid: a form other than compact, an unconfigured
// algorithm, a type other than JWT or one of types, and critical headers.
func readToken(compact string, algorithms []string, types ...string) (token, error) {
	if len(compact) > maxToken {
		return token{}, refuse("the token is longer than %d bytes", maxToken)
	}
	parts := strings.Split(compact, ".")
	if len(parts) != 3 {
		return token{}, refuse("the token is not a compact JWS")
	}
	strict := base64.RawURLEncoding.Strict()
	for i, part := range parts {
		raw, err := strict.DecodeString(part)
		if err != nil || part == "" || strings.ContainsAny(part, "\r\n") {
			return token{}, refuse("the token is not a compact JWS")
		}
		if i == 0 && !json.Valid(raw) { // the JWS library also accepts trailing data
			return token{}, refuse("the token's header is not JSON")
		}
	}
	message, err := jws.ParseString(compact)
	if err != nil || len(message.Signatures()) != 1 {
		return token{}, refuse("the token's header cannot be read")
	}
	header := message.Signatures()[0].ProtectedHeaders()
	if alg := header.Algorithm().String(); !slices.Contains(algorithms, alg) {
		return token{}, refuse("the token's algorithm is %q, not one of %q", clip(alg), algorithms)
	}
	if len(header.Critical()) > 0 {
		return token{}, refuse("the token has critical headers")
	}
	if typ := strings.TrimPrefix(strings.ToLower(header.Type()), "application/"); typ != "" && typ != "jwt" && !slices.Contains(types, typ) {
		return token{}, refuse("the token is a %q, not a JWT", clip(header.Type()))
	}
	var claims Claims
	if err := json.Unmarshal(message.Payload(), &claims); err != nil || claims == nil || !utf8.Valid(message.Payload()) {
		return token{}, refuse("the token's payload is not a JSON object in UTF-8")
	}
	return token{compact: compact, kid: header.KeyID(), alg: header.Algorithm().String(), claims: claims}, nil
}
