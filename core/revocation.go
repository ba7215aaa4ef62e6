package core

// Revocation is a subject, or one token, of an identity provider that must no longer be accepted.
type Revocation struct {
	Issuer  string
	Subject string // every token of this subject; "" when one token is meant
	Token   string // the SHA-256 of one token, in lower-case hex; "" when a subject is meant
}
