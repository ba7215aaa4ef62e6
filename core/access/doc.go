// Package access turns a credential into a core.Identity, and an identity with a workspace id
// into a core.Caller.
//
// It owns the four modes of contract part 2 (dev, key, adapter, both), the comparison of keys,
// login cookies, the cache in front of the auth adapter, browser logins under way, the limit on
// login attempts, and who is a member of what. It does not own HTTP (headers and cookies are the
// doors'), the judgement of tokens (the auth adapter's), or storage (the store's).
//
// It is apart because everything here fails closed: what cannot be decided is core.CodeUnavailable,
// what is not proven is core.CodeUnauthenticated, and nothing else in the server says who someone is.
package access
