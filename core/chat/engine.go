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

	// What apps ask, while a run of any of the servers goes on. These are used when Shared only.
	PutQuestion(ctx context.Context, q core.Question) error
	Question(ctx context.Context, id string) (core.Question, error)             // core.CodeNotFound
	SettleQuestion(ctx context.Context, id string, reply json.RawMessage) error // core.CodeAlreadyAnswered unless it is the first
	ReplyTo(ctx context.Context, id string) (json.RawMessage, error)            // nil when there is none
	DeleteQuestions(ctx context.Context, ids []string) error
}

// Tools is the namespace of a workspace's tools.
type Tools interface {
	List(c core.Caller) []tools.Listed
	Call(ctx context.Context, c core.Caller, call tools.Call) (json.RawMessage, error)
	Open(c core.Caller, o tools.SessionOptions) *tools.Session
	EndSession(id string)
	CheckForm(schema, content json.RawMessage) error // core.CodeInvalidInput when content does not fit
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
	// Patience is how long what an app asks waits for its person before it counts as declined: 5 min.
	Patience time.Duration
}

// Engine runs chats. It is safe for concurrent use.
type Engine struct {
	store  Store
	tools  Tools
	skills *skill.Library
	models atomic.Pointer[Models]
	log    hclog.Logger
	lease  time.Duration

	titles    titles
	questions *questions
	waits     atomic.Int64 // the patience

	mu      sync.Mutex
	running map[string]*slot // by conversation
}

// New returns an Engine.
func New(o Options) *Engine {
	e := &Engine{store: o.Store, tools: o.Tools, skills: o.Skills, log: o.Logger, lease: cmp.Or(o.RunLease, runLease), titles: newTitles(), questions: newQuestions(), running: map[string]*slot{}}
	e.models.Store(o.Models)
	e.UsePatience(o.Patience)
	return e
}

// UseModels exchanges the models. Runs that have begun finish with those they began with.
func (e *Engine) UseModels(m *Models) { e.models.Swap(m).Close() }

// UsePatience exchanges Options.Patience, for what is asked from now on.
func (e *Engine) UsePatience(d time.Duration) { e.waits.Store(int64(cmp.Or(d, patience))) }

func (e *Engine) patience() time.Duration { return time.Duration(e.waits.Load()) }

// Close ends what goes on behind people's backs, and waits for it until ctx ends. Runs end with
// their own contexts.
func (e *Engine) Close(ctx context.Context) error {
	err := e.titles.close(ctx)
	e.models.Load().Close()
	return err
}
