package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Store keeps conversations and usage. A conversation is its owner's: for anyone else every method
// answers core.CodeNotFound.
type Store interface {
	CreateConversation(ctx context.Context, c core.Conversation) (core.Conversation, error)
	Conversation(ctx context.Context, ref core.ConversationRef) (core.Conversation, error)
	Conversations(ctx context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error)
	UpdateConversation(ctx context.Context, ref core.ConversationRef, p core.ConversationPatch) (core.Conversation, error)
	ForkConversation(ctx context.Context, ref core.ConversationRef, atMessage int) (core.Conversation, error)
	DeleteConversation(ctx context.Context, ref core.ConversationRef) error
	Messages(ctx context.Context, ref core.ConversationRef) ([]core.Message, error)
	// AppendMessages keeps the messages with the usage of the calls they came of, all or nothing.
	AppendMessages(ctx context.Context, ref core.ConversationRef, add []core.Message, used ...core.Usage) (core.Conversation, error)
	PutUsage(ctx context.Context, u core.Usage) error
	Usage(ctx context.Context, q core.UsageQuery) (core.UsageReport, error)
	Setting(ctx context.Context, name string) (string, error) // core.CodeNotFound when nothing is kept
	PutSetting(ctx context.Context, name, value string) error

	Shared() bool // whether other servers may use the same state
	// ClaimRun takes, or keeps, the one place for a run in a conversation among all servers, until
	// ReleaseRun or the end of the lease: core.CodeRunInProgress when another has it.
	ClaimRun(ctx context.Context, ref core.ConversationRef, holder string, lease time.Duration) error
	ReleaseRun(ctx context.Context, ref core.ConversationRef, holder string) error
}

// Tools is the namespace of a workspace's tools.
type Tools interface {
	List(c core.Caller) []tools.Listed
	Call(ctx context.Context, c core.Caller, call tools.Call) (json.RawMessage, error)
}

// Options is what an Engine is made of. What has no default is required.
type Options struct {
	Store  Store
	Tools  Tools
	Skills *skill.Library
	Models *Models
	Logger hclog.Logger

	// RunLease is for how long other servers that share the state respect a run of a server that they
	// hear nothing of: 15 s.
	RunLease time.Duration
}

// Engine runs chats. It is safe for concurrent use.
type Engine struct {
	store  Store
	tools  Tools
	skills *skill.Library
	models atomic.Pointer[Models]
	log    hclog.Logger
	lease  time.Duration

	titles titles

	mu      sync.Mutex
	running map[string]*slot // by conversation
}

// New returns an Engine.
func New(o Options) *Engine {
	e := &Engine{store: o.Store, tools: o.Tools, skills: o.Skills, log: o.Logger, lease: cmp.Or(o.RunLease, runLease), titles: newTitles(), running: map[string]*slot{}}
	e.models.Store(o.Models)
	return e
}

// UseModels exchanges the models. Runs that have begun finish with those they began with.
func (e *Engine) UseModels(m *Models) { e.models.Swap(m).Close() }

// Close ends what goes on behind people's backs, and waits for it until ctx ends. Runs end with
// their own contexts.
func (e *Engine) Close(ctx context.Context) error {
	err := e.titles.close(ctx)
	e.models.Load().Close()
	return err
}
