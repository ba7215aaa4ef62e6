package chat

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"

	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Store stores conversations and usage. A conversation is its owner's: for everybody else every method
// returns core.CodeNotFound.
type Store interface {
	CreateConversation(ctx context.Context, c core.Conversation) (core.Conversation, error)
	Conversation(ctx context.Context, ref core.ConversationRef) (core.Conversation, error)
	Conversations(ctx context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error)
	UpdateConversation(ctx context.Context, ref core.ConversationRef, p core.ConversationPatch) (core.Conversation, error)
	ForkConversation(ctx context.Context, ref core.ConversationRef, atMessage int) (core.Conversation, error)
	DeleteConversation(ctx context.Context, ref core.ConversationRef) error
	Messages(ctx context.Context, ref core.ConversationRef) ([]core.Message, error)
	// AppendMessages stores messages with the usage of the calls that made them, all or nothing.
	AppendMessages(ctx context.Context, ref core.ConversationRef, add []core.Message, used ...core.Usage) (core.Conversation, error)
	// SaveUnfinished keeps what the turn that a run is in has so far, until the next AppendMessages; nil keeps nothing.
	SaveUnfinished(ctx context.Context, ref core.ConversationRef, m *core.Message) error
	// QueueMessage stores a message that waits for the end of a run: core.CodeConflict when one does already. HoldQueued says for
	// how long, from now on, it waits at most, and WithdrawQueued ends that: core.CodeNotFound without one.
	QueueMessage(ctx context.Context, ref core.ConversationRef, q core.QueuedMessage, lease time.Duration) error
	HoldQueued(ctx context.Context, ref core.ConversationRef, id string, lease time.Duration) error
	QueuedMessage(ctx context.Context, ref core.ConversationRef) (core.QueuedMessage, error)
	WithdrawQueued(ctx context.Context, ref core.ConversationRef) (core.QueuedMessage, error)
	Attachment(ctx context.Context, ref core.ConversationRef, id string) (core.Attachment, error) // core.CodeNotFound
	PutUsage(ctx context.Context, u core.Usage) error
	Usage(ctx context.Context, q core.UsageQuery) (core.UsageReport, error)
	Setting(ctx context.Context, name string) (string, error) // core.CodeNotFound when nothing is stored
	PutSetting(ctx context.Context, name, value string) error

	claimStore
	elicit.Store
}

// Tools is the namespace of a workspace's tools.
type Tools interface {
	ListFor(c core.Caller, from tools.From) []tools.Listed
	// FitText returns the text of a result as a model gets it: whole, or an excerpt with which it can read on.
	FitText(ctx context.Context, c core.Caller, tool, text string) string
	Call(ctx context.Context, c core.Caller, call tools.Call) (result json.RawMessage, failed bool, err error)
	EndSession(id string)

	elicit.Tools
}

// Features are the feature flags, which a reload may change.
type Features interface{ Enabled(flag string) bool }

// Publisher takes events without waiting.
type Publisher interface{ Publish(core.Event) }

// Metrics measures runs and requests to models.
type Metrics interface {
	// ChatRun records a run by how it ended: its stop reason, or failed.
	ChatRun(outcome string, took time.Duration)
	// ModelCall records a request to a model and what it used.
	ModelCall(used core.Usage, failed bool)
}

// noMetrics measures nothing.
type noMetrics struct{}

func (noMetrics) ChatRun(string, time.Duration) {}
func (noMetrics) ModelCall(core.Usage, bool)    {}

// Options is what an Engine is made of. What has no default is required.
type Options struct {
	Store  Store
	Tools  Tools
	Skills *skill.Library
	Models *Models
	Logger hclog.Logger
	// Features says whether attachments are on; nil means that they are.
	Features Features
	// Events receives the events about conversations; nil drops them.
	Events Publisher
	// Metrics measures runs and requests to models; nil measures nothing.
	Metrics Metrics

	// RunLease is for how long other servers that share the state respect a run of a server that was
	// killed: 15 s.
	RunLease time.Duration
	// ToolBudget is how many tokens of tools a model is offered; 0 for 75,000. Above that it searches for the others.
	ToolBudget int
	// QuestionTimeout is how long a question of an app waits for its person before it counts as declined:
	// 5 min.
	QuestionTimeout time.Duration
}

// Engine runs chats. It is safe for concurrent use.
type Engine struct {
	store    Store
	tools    Tools
	skills   *skill.Library
	models   atomic.Pointer[Models]
	log      hclog.Logger
	features Features
	events   Publisher
	metrics  Metrics

	toolBytes int // how many bytes of tools a model is offered

	titles    titles
	questions *elicit.Questions
	claims    *claims
	detached  *detached
	images    *imageScaler
}

// New returns an Engine.
func New(o Options) *Engine {
	e := &Engine{
		store: o.Store, tools: o.Tools, skills: o.Skills, log: o.Logger, features: o.Features, events: o.Events, metrics: o.Metrics, titles: newTitles(), toolBytes: maxSchemas,
		questions: elicit.New(o.Store, o.Tools, o.QuestionTimeout, o.Logger), claims: newClaims(o.Store, o.RunLease, o.Logger), detached: newDetached(), images: newImageScaler(),
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

// UseModels replaces the models. Runs that have begun finish with those they began with.
func (e *Engine) UseModels(m *Models) { e.models.Swap(m).Close() }

// SetQuestionTimeout replaces Options.QuestionTimeout, from the next question on.
func (e *Engine) SetQuestionTimeout(d time.Duration) { e.questions.SetTimeout(d) }

// Reply answers a question that an app asks in a run of the caller's own. See elicit.Questions.Reply.
func (e *Engine) Reply(ctx context.Context, c core.Caller, id string, r elicit.Reply) error {
	return e.questions.Reply(ctx, c, id, r)
}

// Close ends what goes on in the background, and waits for it until ctx ends. Runs that are not detached end with their own
// contexts.
func (e *Engine) Close(ctx context.Context) error {
	err := errors.Join(e.detached.close(ctx), e.titles.close(ctx))
	e.models.Load().Close()
	return err
}
