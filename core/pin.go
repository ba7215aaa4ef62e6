package core

import "time"

// PinKey identifies what an app's pins belong to: one version of one bundle, installed under one name, and
// possibly one account.
type PinKey struct {
	Workspace string
	App       string // the app's short name
	Bundle    string // the bundle's name; a remote app's URL
	Version   string // the bundle's version; a remote app's serverInfo.version
	Account   string // Account.ID, for definitions that only this account sees; "" for those that all accounts see
}

// Pin is the accepted definition of a tool, and the change to it that is waiting for a decision. The
// definitions are canonical JSON, as package trust writes it.
type Pin struct {
	Tool        string
	Definition  string    // the accepted definition; "" if no tool with this name was ever accepted
	Offered     string    // the definition that the app offers instead; "" if there is no change
	RenamedFrom string    // the accepted tool that Offered appears to be under a new name; "" for none
	Refused     bool      // Offered was refused
	ChangedAt   time.Time // when Offered was first seen
}

// HeldTool is a tool that an app offers but nobody may use.
type HeldTool struct {
	Server string // the app's short name
	Name   string // the bare name
	Reason string // why it is held back, and what to do
}

// PinState is the state of a PinChange.
type PinState string

// The states.
const (
	PinWaiting  PinState = "waiting"
	PinAccepted PinState = "accepted"
	PinRefused  PinState = "refused"
)

// PinChange is a change to a pinned tool as the API shows it.
type PinChange struct {
	ID          string       `json:"id"`
	Server      string       `json:"server"`
	Tool        string       `json:"tool"`
	Version     string       `json:"version"`
	Account     string       `json:"account,omitempty"` // the only account that sees it; "" if all do
	RenamedFrom string       `json:"renamedFrom,omitempty"`
	State       PinState     `json:"state"`
	Changes     []Difference `json:"changes"`
	Since       string       `json:"since"`
}

// Difference is one place where two definitions of a tool differ. Before or After is "" if that definition
// has nothing at that place.
type Difference struct {
	Path   string `json:"path"` // such as inputSchema.properties.path.description
	Before string `json:"before"`
	After  string `json:"after"`
}
