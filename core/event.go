package core

import (
	"time"
)

// Event is one event in a workspace's event stream. Workspace "" means the streams of all workspaces, which
// is only used for the heartbeat.
type Event struct {
	Name      string // the SSE event name
	Workspace string
	Owner     string // User.ID of the only person who gets it; "" means everybody in the workspace
	Data      any    // marshaled as the data line; one of the structs below
}

// The data of the events.
type (
	// BundleInstalled is sent when a bundle has been installed and started.
	BundleInstalled struct {
		Name       string `json:"name"`
		BundleName string `json:"bundleName"`
		Status     State  `json:"status"`
		UI         *UI    `json:"ui"`
	}
	// BundleInstallFailed is sent when a bundle could not be installed. Nothing is left behind.
	BundleInstallFailed struct {
		Name    string     `json:"name"`    // "" if the installation failed before the app had a name
		Source  SourceKind `json:"source"`  // where the bundle should have come from
		Error   Code       `json:"error"`   // as in the response to the install request
		Message string     `json:"message"` // the first line of that response's message, without secrets
	}
	// BundleUninstalled is sent when a bundle has been removed.
	BundleUninstalled struct {
		Name string `json:"name"`
	}
	// BundleStarted is sent when a stopped or dead bundle has started, and after a running one was restarted or updated.
	BundleStarted struct {
		Name string `json:"name"`
	}
	// BundleStopped is sent when a bundle has been stopped.
	BundleStopped struct {
		Name string `json:"name"`
	}
	// BundleProgress is sent while a bundle is installed or updated.
	BundleProgress struct {
		Name    string `json:"name"`
		Stage   string `json:"stage"` // "resolving", "downloading", "installing" or "starting"; "unchanged" ends an update without a newer version
		Message string `json:"message"`
	}
	// BundleCrashed is sent when a process has died and a restart will be attempted. RestartAttempt is 1-based.
	BundleCrashed struct {
		Name           string `json:"name"`
		RestartAttempt int    `json:"restartAttempt"`
		Reason         string `json:"reason,omitempty"` // the limit that the app exceeded; "" if it exited for another reason
	}
	// BundleRecovered is sent when a crashed bundle is running again.
	BundleRecovered struct {
		Name string `json:"name"`
	}
	// BundleDead is sent when no more restarts will be attempted.
	BundleDead struct {
		Name    string `json:"name"`
		Message string `json:"message"`
	}
	// DataChanged is sent when an agent's tool call may have changed data.
	DataChanged struct {
		Server    string `json:"server"`
		Tool      string `json:"tool"`
		Timestamp Stamp  `json:"timestamp"`
	}
	// ConversationUpdated is sent to the owner of a conversation when its title is set or changed.
	ConversationUpdated struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	// ConversationDeleted is sent to the owner of a conversation when it is deleted.
	ConversationDeleted struct {
		ID string `json:"id"`
	}
	// ConversationQueued is sent to the owner of a conversation when a message is queued until the current run ends, and
	// when it leaves the queue.
	ConversationQueued struct {
		ID     string `json:"id"`
		Queued bool   `json:"queued"`
	}
	// PinAdded is sent when an app lists an additional tool although its version has not changed.
	PinAdded struct {
		Server  string `json:"server"`
		Tool    string `json:"tool"`
		Version string `json:"version"`
	}
	// PinChanged is sent when an app changes a tool although its version has not changed.
	PinChanged struct {
		ID          string       `json:"id"`
		Server      string       `json:"server"`
		Tool        string       `json:"tool"`
		Version     string       `json:"version"`
		RenamedFrom string       `json:"renamedFrom,omitempty"`
		Held        bool         `json:"held"` // whether the tool is held back until the change is accepted
		Changes     []Difference `json:"changes"`
	}
	// PinDecided is sent when an administrator has accepted or refused a change to a tool.
	PinDecided struct {
		ID       string   `json:"id"`
		Server   string   `json:"server"`
		Tool     string   `json:"tool"`
		Decision PinState `json:"decision"`
		By       string   `json:"by"` // User.ID
	}
	// ApprovalRequested is sent when a call waits for a person.
	ApprovalRequested struct {
		ID        string `json:"id"`
		Tool      string `json:"tool"`
		Caller    string `json:"caller"` // User.ID
		ExpiresAt string `json:"expiresAt"`
	}
	// ApprovalDecided is sent when a waiting call has been approved or refused.
	ApprovalDecided struct {
		ID       string        `json:"id"`
		Tool     string        `json:"tool"`
		Caller   string        `json:"caller"` // User.ID
		Decision ApprovalState `json:"decision"`
		By       string        `json:"by"`               // User.ID
		Always   bool          `json:"always,omitempty"` // later calls to the tool need no approval
	}
	// ApprovalWithdrawn is sent when a standing approval has been withdrawn.
	ApprovalWithdrawn struct {
		ID   string `json:"id"` // the StandingApproval
		Tool string `json:"tool"`
		By   string `json:"by"` // User.ID
	}
	// ApprovalEnded is sent when a call no longer needs a decision: it was cancelled, nobody decided in time, or it was
	// not made in time.
	ApprovalEnded struct {
		ID     string        `json:"id"`
		Tool   string        `json:"tool"`
		Caller string        `json:"caller"` // User.ID
		State  ApprovalState `json:"state"`  // ApprovalCancelled or ApprovalExpired
	}
	// AppPermissionsChanged is sent when a person has decided what an app may use.
	AppPermissionsChanged struct {
		Name    string `json:"name"`
		By      string `json:"by"` // User.ID
		Allowed int    `json:"allowed"`
		Denied  int    `json:"denied"`
		Revoked int    `json:"revoked"`
	}
	// AppDenied is sent the first time that an app is refused something. Only those who may grant it see what it was.
	AppDenied struct {
		Name string `json:"name"`
	}
	// AccountChanged is sent to the owner of an account when the account is linked or unlinked, or needs a new login. If
	// everybody in the workspace uses the account, everybody gets the event.
	AccountChanged struct {
		ID   string `json:"id"`
		App  string `json:"app"`
		Name string `json:"name"`
	}
	// Heartbeat is sent every 30 seconds.
	Heartbeat struct {
		Timestamp Stamp `json:"timestamp"`
	}
)

// The names of the events.
const (
	EventBundleInstalled     = "bundle.installed"
	EventBundleInstallFailed = "bundle.install_failed"
	EventBundleUninstalled   = "bundle.uninstalled"
	EventBundleStarted       = "bundle.started"
	EventBundleStopped       = "bundle.stopped"
	EventBundleProgress      = "bundle.progress"
	EventBundleCrashed       = "bundle.crashed"
	EventBundleRecovered     = "bundle.recovered"
	EventBundleDead          = "bundle.dead"
	EventDataChanged         = "data.changed"
	EventConversationUpdated = "conversation.updated"
	EventConversationDeleted = "conversation.deleted"
	EventConversationQueued  = "conversation.queued"
	EventPinAdded            = "pin.added"
	EventPinChanged          = "pin.changed"
	EventPinDecided          = "pin.decided"
	EventApprovalRequested   = "approval.requested"
	EventApprovalDecided     = "approval.decided"
	EventApprovalEnded       = "approval.ended"
	EventApprovalWithdrawn   = "approval.withdrawn"
	EventAppPermissions      = "app.permissions"
	EventAppDenied           = "app.denied"
	EventAccountLinked       = "account.linked"
	EventAccountLoginNeeded  = "account.login_needed"
	EventAccountUnlinked     = "account.unlinked"
	EventHeartbeat           = "heartbeat"
)

// Stamp is a time that is encoded in JSON as Timestamp formats it. It is formatted only when an event is encoded,
// because most events are not read by anybody.
type Stamp time.Time

// MarshalText implements encoding.TextMarshaler.
func (s Stamp) MarshalText() ([]byte, error) { return []byte(Timestamp(time.Time(s))), nil }

// UnmarshalText implements encoding.TextUnmarshaler: other servers of a cluster send events as JSON.
func (s *Stamp) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339, string(text))
	*s = Stamp(t)
	return err
}

// Timestamp formats t as all responses and events do: RFC 3339, UTC, milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Change is a notice that a peer server has changed something in the store. It is a hint to read again, not
// the change itself: it may be repeated, or arrive after the change is already known.
type Change struct {
	Kind      ChangeKind
	Workspace string // "" if the change is not in a workspace
	Name      string // what changed; its meaning depends on Kind
}

// ChangeKind is the kind of a Change.
type ChangeKind string

// The kinds of changes. ChangeAll is sent when notices may have been lost: read everything again.
const (
	ChangeApp     ChangeKind = "app"     // an app was installed, uninstalled, started or stopped; Name is its server name
	ChangeMembers ChangeKind = "members" // users, workspaces or members; Name is the User.ID, "" for everybody
	ChangeSetting ChangeKind = "setting" // one of the server's own settings; Name is its name
	ChangePins    ChangeKind = "pins"    // the pinned tools of an app; Name is its server name
	// ChangeToken means that a token was revoked; Name is its SHA-256 in hex.
	ChangeToken ChangeKind = "token"
	// ChangeApproval means that a waiting call was decided on or ended; Name is the id of the approval.
	ChangeApproval ChangeKind = "approval"
	// ChangeAccount means that an account was linked, changed or unlinked; Name is its id, or "" for several.
	ChangeAccount ChangeKind = "account"
	// ChangeViews means that a view of the workspace was set or deleted; Name is the view's name.
	ChangeViews ChangeKind = "views"
	ChangeAll   ChangeKind = "all"
)
