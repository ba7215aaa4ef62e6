package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"

	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Store stores conversations and usage. A conversation belongs to its owner: for everyone else, every method returns
// core.CodeNotFound.
type Store interface {
	CreateConversation(ctx context.Context, c core.Conversation) (core.Conversation, error)
	Conversation(ctx context.Context, ref core.ConversationRef) (core.Conversation, error)
	Conversations(ctx context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error)
	UpdateConversation(ctx context.Context, ref core.ConversationRef, p core.ConversationPatch) (core.Conversation, error)
	ForkConversation(ctx context.Context, ref core.ConversationRef, atMessage int) (core.Conversation, error)
	DeleteConversation(ctx context.Context, ref core.ConversationRef) error
	Messages(ctx context.Context, ref core.ConversationRef) ([]core.Message, error)
	// AppendMessages stores messages together with the usage of the model calls that produced them, atomically.
	AppendMessages(ctx context.Context, ref core.ConversationRef, add []core.Message, used ...core.Usage) (core.Conversation, error)
	// SaveUnfinished stores the turn in progress until the next AppendMessages; nil removes it.
	SaveUnfinished(ctx context.Context, ref core.ConversationRef, m *core.Message) error
	// QueueMessage stores a message that waits for the end of a run. The error is core.CodeConflict if one is already
	// waiting. HoldQueued sets how long from now it may wait, and WithdrawQueued removes it; both return
	// core.CodeNotFound if none is waiting.
	QueueMessage(ctx context.Context, ref core.ConversationRef, q core.QueuedMessage, lease time.Duration) error
	HoldQueued(ctx context.Context, ref core.ConversationRef, id string, lease time.Duration) error
	QueuedMessage(ctx context.Context, ref core.ConversationRef) (core.QueuedMessage, error)
	WithdrawQueued(ctx context.Context, ref core.ConversationRef) (core.QueuedMessage, error)
	Attachment(ctx context.Context, ref core.ConversationRef, id string) (core.Attachment, error) // core.CodeNotFound
	// WorkspaceInstructions returns the admins' instructions for every model in a workspace; "" if there are none.
	WorkspaceInstructions(ctx context.Context, workspace string) (string, error)
	SetWorkspaceInstructions(ctx context.Context, workspace, text string) error
	// PutToolVerdicts stores which sets of tools models accepted or rejected. ToolVerdicts returns the verdicts since a
	// time by the model with an origin, or by all models for the origin "".
	PutToolVerdicts(ctx context.Context, all ...core.ToolVerdict) error
	ToolVerdicts(ctx context.Context, origin string, since time.Time) ([]core.ToolVerdict, error)
	PutUsage(ctx context.Context, u core.Usage) error
	Usage(ctx context.Context, q core.UsageQuery) (core.UsageReport, error)
	Setting(ctx context.Context, name string) (string, error) // core.CodeNotFound if nothing is stored
	PutSetting(ctx context.Context, name, value string) error

	claimStore
	elicit.Store
}

// Tools is the namespace of a workspace's tools.
type Tools interface {
	ListFor(c core.Caller, from tools.From) []tools.Listed
	// FitText returns the text of a result as a model receives it: in full, or as an excerpt with instructions to
	// read the rest.
	FitText(ctx context.Context, c core.Caller, tool, text string) string
	Call(ctx context.Context, c core.Caller, call tools.Call) (result json.RawMessage, failed bool, err error)
	EndSession(id string)

	elicit.Tools
}

// Access reads the rights of callers. *access.Access implements it.
type Access interface {
	// Current returns an earlier caller with the rights that it has now, or an error if it no longer has access.
	Current(ctx context.Context, c core.Caller) (core.Caller, error)
}

// Features reports whether a feature flag is on. A reload may change flags.
type Features interface{ Enabled(flag string) bool }

// Publisher publishes events without blocking.
type Publisher interface{ Publish(core.Event) }

// Metrics records runs and model calls.
type Metrics interface {
	// ChatRun records a finished run. outcome is its stop reason, or "failed".
	ChatRun(outcome string, took time.Duration)
	// ModelCall records a request to a model and its usage.
	ModelCall(used core.Usage, failed bool)
}

type noMetrics struct{}

func (noMetrics) ChatRun(string, time.Duration) {}
func (noMetrics) ModelCall(core.Usage, bool)    {}

// Options configures an Engine. Fields without a documented default are required.
type Options struct {
	Store  Store
	Tools  Tools
	Skills *skill.Library
	Models *Models
	Logger hclog.Logger
	// Access is consulted during tasks that were delegated from outside a run; nil if callers' rights never
	// change.
	Access Access
	// Features enables or disables attachments; nil enables them.
	Features Features
	// Events receives conversation events; nil discards them.
	Events Publisher
	// Metrics records runs and model calls; nil records nothing.
	Metrics Metrics

	// Limits limits the runs of each user; nil limits nothing.
	Limits *limits.Limits
	// TokensPerDay is how many tokens a user may use in a workspace per day (UTC); 0 means no limit.
	TokensPerDay int64
	// RunLease is how long other servers that share the state respect a run after its server was killed; 0 means 15
	// s.
	RunLease time.Duration
	// ToolBudget limits the tool definitions that are offered to a model, in tokens; 0 means 75,000. The model has to
	// search for the tools that do not fit.
	ToolBudget int
	// QuestionTimeout is how long an app's question waits for the person before it is treated as declined; 0 means 5 min.
	QuestionTimeout time.Duration
}

// Engine runs chats. It is safe for concurrent use.
type Engine struct {
	store    Store
	tools    Tools
	skills   *skill.Library
	models   atomic.Pointer[Models]
	log      hclog.Logger
	access   Access
	features Features
	events   Publisher
	metrics  Metrics

	limits       *limits.Limits
	tokensPerDay int64

	toolBytes int // limit for the tools that are offered to a model

	titles    titles
	questions *elicit.Questions
	claims    *claims
	detached  *detached
	asking    *limits.Places // one per request to a peer server
	images    *imageScaler
}

// New returns an Engine.
func New(o Options) *Engine {
	e := &Engine{
		store: o.Store, tools: o.Tools, skills: o.Skills, log: o.Logger, access: o.Access, features: o.Features, events: o.Events, metrics: o.Metrics, titles: newTitles(), toolBytes: maxSchemas,
		limits: o.Limits, tokensPerDay: o.TokensPerDay,
		questions: elicit.New(o.Store, o.Tools, o.QuestionTimeout, o.Logger), claims: &claims{store: o.Store, log: o.Logger, lease: cmp.Or(o.RunLease, defaultLease), active: map[string]*claim{}}, detached: newDetached(), asking: placesToAsk(o.Limits), images: newImageScaler(),
	}
	if o.ToolBudget > 0 {
		e.toolBytes = 4 * o.ToolBudget
	}
	if e.metrics == nil {
		e.metrics = noMetrics{}
	}
	e.models.Store(o.Models)
	e.servePeers()
	return e
}

// UseModels replaces the models. Runs that have already started keep using their models.
func (e *Engine) UseModels(m *Models) { e.models.Swap(m).Close() }

// SetQuestionTimeout replaces Options.QuestionTimeout for new questions.
func (e *Engine) SetQuestionTimeout(d time.Duration) { e.questions.SetTimeout(d) }

// Reply answers a question that an app asked in one of the caller's runs. See elicit.Questions.Reply.
func (e *Engine) Reply(ctx context.Context, c core.Caller, id string, r elicit.Reply) error {
	return e.questions.Reply(ctx, c, id, r)
}

// Close ends detached runs and other background work, and waits for them until ctx ends. Runs that are not detached
// end with their own contexts.
func (e *Engine) Close(ctx context.Context) error {
	err := errors.Join(e.detached.close(ctx), e.titles.close(ctx))
	e.models.Load().Close()
	return err
}
