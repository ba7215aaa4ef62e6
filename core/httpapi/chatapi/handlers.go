package chatapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/stream"
)

// Chat runs conversations with a model. Its errors are core.Errors.
type Chat interface {
	Begin(ctx context.Context, c core.Caller, r chat.Request) (*chat.Run, error)
	Detach(run *chat.Run, within func(context.Context) (context.Context, context.CancelFunc), done func()) *chat.Live
	Live(ctx context.Context, c core.Caller, id string) (chat.Follower, error)
	StopRun(ctx context.Context, c core.Caller, id string) error
	Queue(ctx context.Context, c core.Caller, r chat.Request, start func(ctx context.Context, r chat.Request) error) (*core.QueuedMessage, error)
	Queued(ctx context.Context, c core.Caller, id string) (core.QueuedMessage, error)
	Withdraw(ctx context.Context, c core.Caller, id string) (core.QueuedMessage, error)
	Reply(ctx context.Context, c core.Caller, id string, r elicit.Reply) error
	AcquireRun(ctx context.Context, c core.Caller) (release func(), err error)

	Conversations(ctx context.Context, c core.Caller, q core.ConversationQuery) (core.ConversationPage, error)
	Conversation(ctx context.Context, c core.Caller, id string) (core.Conversation, error)
	History(ctx context.Context, c core.Caller, id string) ([]core.Message, error)
	Edit(ctx context.Context, c core.Caller, id string, p core.ConversationPatch) (core.Conversation, error)
	Fork(ctx context.Context, c core.Caller, id string, atMessage *int) (core.Conversation, error)
	Restore(ctx context.Context, c core.Caller, title *string, metadata json.RawMessage, messages []core.Message) (core.Conversation, error)
	Delete(ctx context.Context, c core.Caller, id string) error
	Usage(ctx context.Context, c core.Caller, q core.UsageQuery) (core.UsageReport, error)
	Attachment(ctx context.Context, c core.Caller, conversation, id string) (core.Attachment, error)
	Skills(c core.Caller) []skill.Skill
}

// Handlers holds the route handlers and their dependencies.
type Handlers struct {
	Chat    Chat
	Streams *stream.Streams
	Limits  *limits.Limits
	Authn   *authn.Authenticator
	Log     hclog.Logger
	Quiet   time.Duration // between a stream's keep-alive comments
}
