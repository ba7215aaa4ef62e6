// Package access authenticates callers: it turns a credential into a core.Identity, and an identity with
// a workspace id into a core.Caller.
//
// It owns the modes (dev, key, adapter, both), SERVICE_API_KEY and API keys, login cookies, and pending browser
// logins. It also owns the cache in front of the auth adapter, the limit on login attempts, membership, and the
// notification of revocations. It does not own HTTP headers and cookies (httpapi and mcphttp), the verification of
// tokens (auth adapters), or storage (store).
//
// Everything here fails closed: the error is core.CodeUnavailable for credentials that cannot be checked, and
// core.CodeUnauthenticated for all others that are not proven valid.
package access
