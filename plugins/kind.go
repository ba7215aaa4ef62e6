package plugins

// Kind is the contract that a plugin implements. It is also the value of the handshake cookie, so that
// an executable of another kind is refused before a connection is made.
type Kind string

// The kinds of plugins.
const (
	KindAuth         Kind = "auth"
	KindSessionStore Kind = "sessionstore"
	KindRegistry     Kind = "registry"
	KindAudit        Kind = "audit"
)

// Kinds returns every kind, in the order in which they are tried for a file that does not name its kind.
func Kinds() []Kind {
	return []Kind{KindSessionStore, KindAuth, KindRegistry, KindAudit}
}

// Info describes a plugin.
type Info struct {
	Name             string // the implementation's name, such as "redis"
	Version          string // any text
	Kind             Kind
	ProtocolVersions []int    // the protocol versions of its kind that it can serve, ascending
	Capabilities     []string // its optional capabilities, sorted
}

// The names of capabilities in Info (proto/ropewalk/plugin/v1).
const (
	CapabilityConfigure     = "configure"
	CapabilityValidate      = "validate"
	CapabilityLogin         = "login"
	CapabilityRevocations   = "revocations"    // of the kind auth
	CapabilitySessions      = "sessions"       // of the kind auth
	CapabilityVerifyRequest = "verify.request" // of the kind auth
	CapabilityDurable       = "durable"        // of the kind sessionstore
	CapabilityReplace       = "replace"        // of the kind sessionstore
	CapabilityRead          = "read"           // of the kind audit
	CapabilityExclusive     = "exclusive"      // of every kind
)
