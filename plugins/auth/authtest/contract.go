package authtest

// The sentences of the contract that failures cite.
const (
	sSignature   = "a bad signature"
	sAlgorithm   = "an algorithm that Describe does not name (compared exactly)"
	sWrongIssuer = "a wrong issuer"
	sAudiences   = "audiences that do not include any in the request (unless the request names none)"
	sOtherOrg    = "a token from another organization if the settings name one"
	sForm        = "anything that is not a bearer token: text in a form other than the expected one"
	sOwner       = "Verify checks a token and returns its owner"
	sCannotTell  = "UNAVAILABLE means that the adapter cannot tell. It neither accepts nor refuses the token"
	sConcurrent  = "Calls are concurrent, each with a deadline: a call that ends does not end the others"
	sNumbers     = "an exp must be a number of seconds up to the year 9999, and so must nbf and iat if they are present"
	sSkew        = "a token is good until 30 seconds after its exp and from 30 seconds before its nbf and iat"
	sAnyAudience = "empty means any audience will do"
	sDiffers     = "A text that differs from a good token in any character, including white space, is not that token"
	sOwn         = "The identity, with its subject, organization and role, is the token's own, whatever tokens came earlier or come at the same moment"
	sPerson      = "Issuer and subject together identify a person and are never empty"
	sVouches     = "It is empty unless the provider vouches for it"
	sEmail       = "The e-mail address that the provider states for the subject, such as the email claim; may be empty"
	sRole        = "Without a role in the token, or with any other role, a person is at most a member"
	sScopes      = "The granted scopes, and no others; may be empty"
	sExpires     = "When the token expires: its exp, without the allowance for clocks"
	sGroups      = "The groups at the provider that the token names; may be empty"
	sNamesGroups = "Whether the token names the person's groups, even if there are none"
	sClaims      = "The other claims of the token with their values, as one JSON object; may be empty"
	sSession     = "The session at the provider that the token or the login belongs to, such as the sid claim; may be empty"

	sAdded    = "If a token names a key that the provider has added, the adapter finds it with the first such token or, if it has just read the set, within 15 seconds"
	sRemoved  = "A key that the provider removed is no longer used once the adapter has read the key set again"
	sKept     = "Keys that were read stay in use while the provider is unavailable or returns something other than a key set"
	sSixTimes = "Key ids that the provider does not know cause at most 6 requests for keys a minute"
	sSlow     = "If the provider is slow, the adapter waits until the deadline of the call"
	sBack     = "Once the provider is back, a good token is accepted within 15 seconds"
	sNotUsed  = "Documents about another issuer, redirects to another host and responses of more than 1 MiB are not used: the adapter then cannot tell"
	sAsks     = "refuses a token if the provider reports that it is not active or is about another subject; without such a response it cannot tell"

	sDescribe   = "It responds without asking the provider, so it works while the provider is unavailable, and always returns the same result"
	sIssuer     = "The issuer of the tokens it accepts"
	sServers    = "The authorization servers for the RFC 9728 document, as absolute URLs; usually the issuer alone. An adapter of OpenID providers names one"
	sRS256      = "An adapter of OpenID providers accepts RS256 unless its settings exclude it"
	sHasLogin   = "The adapter serves LoginService and its settings allow a browser login"
	sMetadata   = "Metadata returns the provider's RFC 8414 authorization-server document, as the provider wrote it"
	sNoMetadata = "UNAVAILABLE if the document could not be read"

	sAuthorize   = "the provider's authorization endpoint, with the values from the request"
	sExchange    = "Exchange trades the code that came back for the person's identity. It is the identity in the id token, whoever the access token is about"
	sIDToken     = "The id token is checked as Verify checks a token, with the client id as its audience"
	sBadLogin    = "UNAUTHENTICATED for a code that the provider refuses, for a missing or bad id token, for one with a different nonce and for one issued to another client (azp)"
	sOnce        = "A code can be used once"
	sUnreachable = "UNAVAILABLE if the provider cannot be reached"
	sUserInfo    = "Claims from the provider's UserInfo endpoint count only if they are about the id token's subject, and give nobody a role"

	sSessions = `SessionService is the optional capability "sessions"`
	sRenewal  = "For a login: what CheckSession needs to ask the provider about it again, at most 32 KiB"
	sConfirms = "asks the provider whether the login that belongs to a renewal is still good, and returns its identity, with the renewal that replaces the old one"
	sEnds     = "UNAUTHENTICATED ends the login"
	sLogout   = "VerifyLogout checks a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6), except for whether it was used before, which the server checks"
	sNoLogout = "a bad signature, another issuer or audience, a missing iat, exp, jti or logout event, a token that has expired or was issued in the future, a nonce, neither a subject nor a session, and anything that is not a logout token"
	sEnded    = "what the provider ended: the session, or without one all sessions of the subject"
	sNamed    = `For a login of an adapter with the capability "sessions", it is the one that logout tokens name`

	sBound = "It accepts a token that is bound to a key (the cnf claim) only if the request proves that the sender has the key"
	sProof = "by a DPoP proof (RFC 9449) for this method, URL and token that it has not seen before, or by the token's client certificate (RFC 8705)"

	sRevokes  = `RevocationService is the optional capability "revocations"`
	sWatch    = "Watch streams revocations from now on, each within two seconds after the adapter learns of it"
	sOpen     = "The stream stays open; if it ends, the server opens it again"
	sNoLonger = "WatchResponse is one subject or one token that is no longer good"

	sSilent = "No token, code or secret may appear in an error, a log line or anything else that the adapter prints"
)

// Clause is a reason why Verify must reject a token. Samples and reports use these names.
type Clause string

// The reasons why Verify must reject a token.
const (
	Signature  Clause = "a bad signature"
	Algorithm  Clause = "another algorithm"
	Issuer     Clause = "another issuer"
	ForAnother Clause = "another audience"
	Expired    Clause = "an expiry in the past"
	NoExpiry   Clause = "no expiry"
	NotYet     Clause = "a start in the future"
	OtherOrg   Clause = "another organization"
	Form       Clause = "a malformed token"
)

func clauses() []Clause {
	return []Clause{Signature, Algorithm, Issuer, ForAnother, Expired, NoExpiry, NotYet, OtherOrg, Form}
}

// sentence returns the sentence of the contract that contains the clause.
func (c Clause) sentence() string {
	return map[Clause]string{
		Signature: sSignature, Algorithm: sAlgorithm, Issuer: sWrongIssuer, ForAnother: sAudiences, Expired: sSkew, NoExpiry: sNumbers, NotYet: sSkew, OtherOrg: sOtherOrg, Form: sForm,
	}[c]
}
