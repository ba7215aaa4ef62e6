package sandbox

import "fmt"

// Level is the strength of an app's confinement. A higher level includes the lower ones.
type Level int

// The levels, from the weakest to the strongest.
const (
	LevelNone       Level = iota // the app runs with the server's privileges
	LevelLandlock                // Landlock and the system call filter
	LevelNamespaces              // LevelLandlock plus namespaces
)

func (l Level) String() string {
	switch l {
	case LevelNone:
		return "none"
	case LevelLandlock:
		return "landlock"
	default:
		return "namespaces"
	}
}

// ParseLevel parses a level as formatted by String.
func ParseLevel(s string) (Level, error) {
	for _, l := range []Level{LevelNone, LevelLandlock, LevelNamespaces} {
		if l.String() == s {
			return l, nil
		}
	}
	return LevelNone, fmt.Errorf("%q is not a level: use none, landlock or namespaces", s)
}

// MarshalText returns the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText parses the level's name.
func (l *Level) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLevel(string(text))
	return err
}
