package plugins

// Kind is what a plugin is for. It is also the value of its handshake cookie, so that an
// executable of another kind is refused before a word is exchanged.
type Kind string

// The kinds of plugins.
const (
	KindAuth         Kind = "auth"
	KindSessionStore Kind = "sessionstore"
	KindRegistry     Kind = "registry"
)

// Info is who a plugin is.
type Info struct {
	Name    string // its own name, such as "redis"
	Version string // any text
	Kind    Kind
	Wires   []int    // the wire versions of its kind that it can serve, ascending
	Powers  []string // the optional powers it has, sorted
}

// The words for powers in Info (proto/ropewalk/plugin/v1).
const (
	PowerConfigure = "configure"
	PowerValidate  = "validate"
	PowerLogin     = "login"
)
