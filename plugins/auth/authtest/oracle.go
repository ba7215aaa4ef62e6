package authtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// world is what the oracle knows: the adapter's configuration, and the provider. The oracle parses each token itself
// and judges it by the contract; it does not know how the generator made it.
type world struct {
	issuer       string
	organization string // the only organization to admit; "" for any
	roleClaim    string // "" if the settings name none
	limits       Limits
	algorithms   []string
	binds        bool                             // the adapter has the capability verify.request
	loose        bool                             // missing claims are not compared: for an author's samples
	clientID     string                           // the audience of id tokens and logout tokens
	signs        func(alg string, j *jws) *signer // returns the provider's key that made the signature, or nil
	keys         *Keys
	proofs       *sync.Map // the ids of DPoP proofs that were accepted
}

// jws is a token in compact form.
type jws struct {
	header, claims map[string]any
	input, sig     []byte
}

// readJWS parses a compact JWS. It returns nil unless the text has three base64url parts without padding, the first two
// of which are JSON objects.
func readJWS(text string) *jws {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil
	}
	var raw [3][]byte
	for i, part := range parts {
		b, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || part == "" || strings.ContainsAny(part, "\r\n") {
			return nil
		}
		raw[i] = b
	}
	j := &jws{header: readObject(raw[0]), claims: readObject(raw[1]), input: []byte(parts[0] + "." + parts[1]), sig: raw[2]}
	if j.header == nil || j.claims == nil {
		return nil
	}
	return j
}

// readObject parses a JSON object without rounding its numbers. It returns nil for anything else.
func readObject(raw []byte) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var all map[string]any
	if decoder.Decode(&all) != nil || decoder.More() {
		return nil
	}
	return all
}

// verify returns what the contract requires of a call to Verify made at some time between from and to.
func (w *world) verify(req auth.VerifyRequest, from, to time.Time) demand {
	j := readJWS(req.Token)
	if j == nil {
		return refused(Form, "the text is not a compact JWS")
	}
	d := w.judgeClaims(j.claims, req.Audiences, from, to)
	w.judgeHeader(&d, j, []string{"jwt", "at+jwt"})
	w.judgeBinding(&d, j.claims, req, from, to)
	if len(req.Token) > 16<<10 {
		d.mayRefuse("it has more than 16 KiB")
	}
	return d
}

// judgeHeader checks the signature and the header.
func (w *world) judgeHeader(d *demand, j *jws, types []string) {
	alg, _ := j.header["alg"].(string)
	if !slices.Contains(w.algorithms, alg) {
		d.refuse(Algorithm, "Describe does not name its algorithm")
	} else if d.signer = w.signs(alg, j); d.signer == nil || !d.signer.signs() {
		d.refuse(Signature, "it is not signed with any of the provider's signature keys")
	} else if kid, ok := j.header["kid"].(string); kid != d.signer.kid || !ok {
		d.mayRefuse("it does not name the key that signed it")
	}
	if crit, ok := j.header["crit"]; ok {
		if list, isList := crit.([]any); isList && len(list) == 0 {
			d.mayRefuse("its list of critical headers is empty")
		} else {
			d.refuse(Form, "it has critical headers")
		}
	}
	typ, isText := j.header["typ"].(string)
	if _, has := j.header["typ"]; has && typ == "" && isText {
		d.mayRefuse("its type is empty")
	} else if has && (!isText || !slices.Contains(types, strings.TrimPrefix(strings.ToLower(typ), "application/"))) {
		d.refuse(Form, "it has a type other than JWT")
	} else if has && typ != "JWT" && !slices.Contains(types, typ) {
		d.mayRefuse("its type is written in an unusual way")
	}
}

// judgeClaims checks the claims of a token.
func (w *world) judgeClaims(claims map[string]any, audiences []string, from, to time.Time) demand {
	d := demand{allowed: accept, why: "it is valid", sentence: sOwner, claims: claims}
	if iss, _ := claims["iss"].(string); iss != w.issuer {
		d.refuse(Issuer, "it has another issuer")
	}
	if sub, _ := claims["sub"].(string); sub == "" {
		d.refuse(Form, "it has no subject")
	} else if len(sub) > 255 {
		d.mayRefuse("its subject has more than 255 bytes")
	}
	w.judgeTimes(&d, claims, from, to)
	held, mixed := texts(claims["aud"])
	switch {
	case len(audiences) == 0 || w.loose && claims["aud"] == nil:
		d.sentence = sAnyAudience
	case !slices.ContainsFunc(held, func(aud string) bool { return slices.Contains(audiences, aud) }):
		d.refuse(ForAnother, "it is for another audience")
	case mixed:
		d.mayRefuse("its audience is not a list of strings")
	}
	if w.organization != "" {
		organizations, mixed := texts(claims[organizationClaim])
		switch {
		case !slices.Contains(organizations, w.organization):
			d.refuse(OtherOrg, "it belongs to another organization")
		case mixed || len(organizations) != 1 || claims[organizationClaim] != w.organization:
			d.mayRefuse("it names its organization in a list")
		}
	}
	if _, set := claims["events"]; set {
		d.mayRefuse("it has an events claim")
	}
	d.judge = func(id auth.Identity) (string, string) { return w.judgeIdentity(claims, id) }
	return d
}

func (w *world) judgeTimes(d *demand, claims map[string]any, from, to time.Time) {
	const skew, grain = 30 * time.Second, time.Second // clocks are read to the second
	exp, known := seconds(claims["exp"])
	switch end := exp.Add(skew); {
	case !known:
		d.refuse(NoExpiry, "it has no exp that is a number of seconds")
	case !from.Before(end.Add(grain)):
		d.refuse(Expired, "it has expired")
	case !to.Before(end.Add(-grain)), w.loose && !to.Before(exp.Add(-grain)): // an adapter that issues its own tokens need not allow for clock differences
		d.mayRefuse("it is about to expire")
	}
	for _, name := range []string{"nbf", "iat"} {
		value, set := claims[name]
		if !set {
			continue
		}
		at, known := seconds(value)
		switch begin := at.Add(-skew); {
		case !known:
			d.refuse(NotYet, "its "+name+" is not a number of seconds")
			d.sentence = sNumbers
		case to.Before(begin.Add(-grain)):
			d.refuse(NotYet, "it is not valid yet ("+name+")")
		case from.Before(begin.Add(grain)):
			d.mayRefuse("it is about to become valid")
		case at.Unix() < 0:
			d.mayRefuse("its " + name + " is before 1970")
		}
	}
}

// exchange returns what the contract requires of an Exchange for which the provider returned this id token.
func (w *world) exchange(idToken, nonce string, from, to time.Time) demand {
	j := readJWS(idToken)
	if j == nil {
		return refused(Form, "there is no id token that is a compact JWS")
	}
	d := w.judgeClaims(j.claims, []string{w.clientID}, from, to)
	w.judgeHeader(&d, j, []string{"jwt", "at+jwt"})
	if typ, _ := j.header["typ"].(string); strings.Contains(typ, "at+") {
		d.mayRefuse("its type is that of an access token")
	}
	if got, _ := j.claims["nonce"].(string); nonce != "" && got != nonce {
		d.refuse(Form, "its nonce is not the login's")
	}
	if azp, set := j.claims["azp"]; set && azp != w.clientID {
		d.refuse(Form, "it was issued to another client")
	}
	if d.clause != "" {
		d.sentence = sIDToken
	}
	return d
}

// logout returns what the contract requires of VerifyLogout.
func (w *world) logout(text string, from, to time.Time) demand {
	j := readJWS(text)
	if j == nil {
		return refused(Form, "the text is not a compact JWS")
	}
	d := demand{allowed: accept, why: "it is valid", sentence: sLogout, claims: j.claims}
	w.judgeHeader(&d, j, []string{"jwt", "logout+jwt"})
	w.judgeTimes(&d, j.claims, from, to)
	if iss, _ := j.claims["iss"].(string); iss != w.issuer {
		d.refuse(Issuer, "it has another issuer")
	}
	if held, mixed := texts(j.claims["aud"]); !slices.Contains(held, w.clientID) {
		d.refuse(ForAnother, "it is for another client")
	} else if mixed {
		d.mayRefuse("its audience is not a list of strings")
	}
	_, issued := seconds(j.claims["iat"])
	jti, _ := j.claims["jti"].(string)
	events, _ := j.claims["events"].(map[string]any)
	_, event := events[logoutEvent].(map[string]any)
	sub, _ := j.claims["sub"].(string)
	sid, _ := j.claims["sid"].(string)
	_, nonce := j.claims["nonce"]
	for what, wrong := range map[string]bool{
		"it has no iat": !issued, "it has no jti": jti == "", "it has no logout event": !event, "it has a nonce": nonce, "it names neither a subject nor a session": sub == "" && sid == "",
	} {
		if wrong {
			d.refuse(Form, what)
		}
	}
	if d.clause != "" {
		d.sentence = sNoLogout
	}
	return d
}

// texts returns the strings in a claim that is a string or a list. mixed reports whether the list also contains other
// values.
func texts(value any) (held []string, mixed bool) {
	if one, ok := value.(string); ok {
		return []string{one}, false
	}
	list, _ := value.([]any)
	for _, item := range list {
		if text, ok := item.(string); ok {
			held = append(held, text)
		} else {
			mixed = true
		}
	}
	return held, mixed
}

// seconds parses a NumericDate (RFC 7519 section 2).
func seconds(value any) (time.Time, bool) {
	number, _ := value.(json.Number)
	at, err := number.Float64()
	if err != nil || at > 253402300799 || at < -1e11 {
		return time.Time{}, false
	}
	return time.Unix(int64(at), 0), true
}

// anyText reports whether a string occurs anywhere in a value, as a member name, a string or a word of a string.
func anyText(value any, text string) bool {
	switch value := value.(type) {
	case string:
		return value == text || slices.Contains(strings.Fields(value), text)
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return anyText(item, text) })
	case map[string]any:
		for name, item := range value {
			if name == text || anyText(item, text) {
				return true
			}
		}
	}
	return false
}
