package authtest

// The sentences of the contract that a failure cites.
const (
	sOwner       = "Verify checks a token and returns its owner"
	sCannotTell  = "UNAVAILABLE means that the adapter cannot tell: never an acceptance and never a refusal"
	sConcurrent  = "Calls come concurrently, each with a deadline: one that ends does not end the others"
	sSigned      = "A token is good if it was signed with a key of that set that is meant for signatures"
	sBytes       = "Names, identifiers and URLs are compared byte by byte"
	sNumbers     = "an exp must be a number of seconds up to the year 9999, and so must nbf and iat if they are there"
	sSkew        = "a token is good until 30 seconds after its exp and from 30 seconds before its nbf and iat"
	sRemembered  = "A verdict is never remembered beyond that"
	sWhatever    = "Whatever else a token of up to 16 KiB has in its header and claims does not matter"
	sAnyAudience = "empty means any audience will do"
	sDiffers     = "A text that differs from a good token in any character, white space included, is not that token"
	sAnyText     = "Any text may come as a token, the empty one included"
	sOwn         = "The identity is the token's own: its subject, its organization, its role, whatever tokens came before or come at the same moment"
	sPerson      = "Issuer and subject together identify a person and are never empty"
	sSubject     = "Up to 255 bytes are kept as they are"
	sVouches     = "It is empty unless the provider vouches for it"
	sEmail       = "The e-mail address that the provider states for the subject, such as the claim email; may be empty"
	sRole        = "without a role in the token nobody is more than a member, and a role that is none of the three makes nobody more than that"
	sRank        = `The rank in that organization: "owner", "admin" or "member"; empty counts as member`
	sScopes      = "The scopes that were granted, and no others; may be empty"
	sExpires     = "When the token expires: its exp, without the difference of clocks"
	sGroups      = "The groups at the provider that the token names; may be empty"
	sClaims      = "The other claims of the token with their values, as one JSON object; may be empty"
	sSession     = "The session at the provider that the token or the login belongs to, such as the claim sid; may be empty"

	sAdded      = "A key that the provider added is found by the first token that names it, or within 15 seconds if the adapter has just read the set"
	sRemoved    = "A key that the provider removed is no longer used once the adapter has read the key set again"
	sKept       = "Keys that were read stay in use while the provider is unavailable or answers something else than a key set"
	sPassedOver = "Keys in the set that the adapter cannot use are passed over"
	sSixTimes   = "Key ids that the provider does not know cause at most 6 requests for keys a minute"
	sSlow       = "A provider that is slow is waited for until the deadline of the call"
	sBack       = "Once the provider is back, a good token is accepted within 15 seconds"
	sNotUsed    = "Documents about another issuer, redirects to another host and answers of more than 1 MiB are not used: the adapter then cannot tell"
	sAsks       = "refuses a token that the provider says is not active or is about another subject, and cannot tell without such an answer"

	sDescribe   = "It answers without asking the provider, so it works while the provider is unavailable, and says the same each time"
	sIssuer     = "The issuer whose tokens it accepts"
	sServers    = "The authorization servers for the RFC 9728 document, as absolute URLs"
	sRS256      = "An adapter of OpenID providers accepts RS256 unless its settings say otherwise"
	sHasLogin   = "The adapter serves LoginService and its settings allow a browser login"
	sMetadata   = "Metadata returns the provider's RFC 8414 authorization-server document, as the provider wrote it"
	sNoMetadata = "UNAVAILABLE when the document could not be read"

	sAuthorize = "the provider's authorization endpoint, with the values of the request"
	sExchange  = "Exchange trades the code that came back for the identity of the person: that of the id token, whoever the access token is about"
	sIDToken   = "The id token is checked as Verify checks a token, for the client id as its audience"
	sBadLogin  = "UNAUTHENTICATED for a code that the provider refuses, for a missing or bad id token, for one whose nonce differs and for one that was given to another client (azp)"
	sOnce      = "A code is good once"
	sAway      = "UNAVAILABLE when the provider cannot be asked"
	sUserInfo  = "What the provider says at its UserInfo endpoint counts only if it is about the subject of the id token, and gives nobody a role"

	sSessions = `SessionService is the optional capability "sessions"`
	sRenewal  = "Of a login: what CheckSession needs to ask the provider about it again, at most 32 KiB"
	sConfirms = "asks the provider whether the login that a renewal came with is still good, and returns its identity, with the renewal that takes the place of the old one"
	sEnds     = "UNAUTHENTICATED ends the login"
	sEvery    = "A renewal is good for every process with the same settings, also after a restart"
	sLogout   = "VerifyLogout checks a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6), except that it was not used before, which the server does"
	sNoLogout = "a bad signature, another issuer or audience, a missing iat, exp, jti or logout event, a token that has expired or was issued in the future, a nonce, neither a subject nor a session, and anything that is not a logout token"
	sEnded    = "what the provider ended: the session, or without one all sessions of the subject"
	sNamed    = `Of a login of an adapter with the capability "sessions" it is the one that logout tokens name`

	sBound = "It accepts a token that is bound to a key (the claim cnf) only if the request proves that the sender has the key"
	sProof = "by a DPoP proof (RFC 9449) for this method, URL and token that it has not seen before, or by the client certificate of the token (RFC 8705)"

	sRevokes  = `RevocationService is the optional capability "revocations"`
	sWatch    = "Watch streams revocations from now on, each within two seconds of the adapter's learning of it"
	sOpen     = "The stream stays open; when it ends, the server opens it again"
	sNoLonger = "WatchResponse is one subject or one token that is no longer good"

	sSilent = "No token, code or secret appears in an error or a log line, nor in anything else that the adapter prints"
)

// Clause is a part of what Verify promises to refuse, as samples name it.
type Clause string

// The clauses of Verify's contract.
const (
	Signature  Clause = "a bad signature"
	Algorithm  Clause = "another algorithm"
	Issuer     Clause = "another issuer"
	ForAnother Clause = "another audience"
	Expired    Clause = "an expiry that is over"
	NoExpiry   Clause = "no expiry"
	NotYet     Clause = "a start that is still to come"
	OtherOrg   Clause = "another organization"
	Form       Clause = "another form"
)

func clauses() []Clause {
	return []Clause{Signature, Algorithm, Issuer, ForAnother, Expired, NoExpiry, NotYet, OtherOrg, Form}
}

// sentence is the part of the contract that a clause is of.
func (c Clause) sentence() string {
	return map[Clause]string{
		Signature: "a bad signature", Algorithm: "an algorithm that Describe does not name, compared exactly", Issuer: "a wrong issuer",
		ForAnother: "audiences none of which is in the request (unless the request names none)", Expired: sSkew, NoExpiry: sNumbers, NotYet: sSkew,
		OtherOrg: "a token of another organization where the settings name one",
		Form:     "anything that is not a bearer token: text of another form than the expected one",
	}[c]
}

// verifySentences are those that verdicts about tokens rest on.
func verifySentences() []string {
	all := []string{
		sOwner, sCannotTell, sConcurrent, sSigned, sBytes, sNumbers, sSkew, sRemembered, sWhatever, sAnyAudience, sDiffers, sAnyText, sOwn, sPerson, sSubject, sEmail, sVouches,
		sRole, sRank, sScopes, sExpires, sGroups, sClaims, sSession, sBound, sSilent,
	}
	for _, c := range clauses() {
		all = append(all, c.sentence())
	}
	return all
}
