package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

// fakeConversations is an in-memory store for the chat.
type fakeConversations struct {
	chat.Store // for the methods that only clusters need

	mu            sync.Mutex
	made          int
	conversations map[string]*core.Conversation
	messages      map[string][]core.Message
	settings      fakes.Settings
	instructions  map[string]string
	report        core.UsageReport
	asked         []any // the queries it received
}

func newFakeConversations() *fakeConversations {
	return &fakeConversations{conversations: map[string]*core.Conversation{}, messages: map[string][]core.Message{}, instructions: map[string]string{}}
}

func (m *fakeConversations) CreateConversation(_ context.Context, c core.Conversation) (core.Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	c.ID, c.CreatedAt, c.UpdatedAt = fmt.Sprintf("conv_%016x", m.made), time.Now(), time.Now()
	m.conversations[c.ID] = &c
	return c, nil
}

func (m *fakeConversations) find(ref core.ConversationRef) (*core.Conversation, error) {
	c := m.conversations[ref.ID]
	if c == nil || c.Owner != ref.Owner || c.Workspace != ref.Workspace {
		return nil, core.Errorf(core.CodeNotFound, "there is no such conversation")
	}
	return c, nil
}

func (m *fakeConversations) Conversation(_ context.Context, ref core.ConversationRef) (core.Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.find(ref)
	if err != nil {
		return core.Conversation{}, err
	}
	return *c, nil
}

func (m *fakeConversations) Conversations(_ context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, q)
	var page core.ConversationPage
	for _, c := range m.conversations {
		if c.Owner == owner && c.Workspace == workspace {
			page.Conversations = append(page.Conversations, *c)
		}
	}
	slices.SortFunc(page.Conversations, func(a, b core.Conversation) int { return cmp.Compare(b.ID, a.ID) })
	if page.TotalCount = len(page.Conversations); page.TotalCount > q.Limit {
		page.Conversations, page.NextCursor = page.Conversations[:q.Limit], "more"
	}
	return page, nil
}

func (m *fakeConversations) UpdateConversation(_ context.Context, ref core.ConversationRef, p core.ConversationPatch) (core.Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.find(ref)
	if err != nil {
		return core.Conversation{}, err
	}
	if p.Title != nil {
		c.Title = *p.Title
	}
	if p.Metadata != nil {
		c.Metadata = p.Metadata
	}
	if p.DisabledApps != nil {
		c.DisabledApps = p.DisabledApps
	}
	return *c, nil
}

func (m *fakeConversations) ForkConversation(ctx context.Context, ref core.ConversationRef, at int) (core.Conversation, error) {
	c, err := m.Conversation(ctx, ref)
	if err != nil {
		return core.Conversation{}, err
	}
	made, _ := m.CreateConversation(ctx, c)
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.messages[ref.ID]
	if at >= 0 {
		all = all[:min(at, len(all))]
	}
	m.messages[made.ID] = slices.Clone(all)
	return made, nil
}

func (m *fakeConversations) DeleteConversation(_ context.Context, ref core.ConversationRef) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(ref); err != nil {
		return err
	}
	delete(m.conversations, ref.ID)
	return nil
}

func (m *fakeConversations) Messages(_ context.Context, ref core.ConversationRef) ([]core.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(ref); err != nil {
		return nil, err
	}
	return slices.Clone(m.messages[ref.ID]), nil
}

func (m *fakeConversations) QueuedMessage(context.Context, core.ConversationRef) (core.QueuedMessage, error) {
	return core.QueuedMessage{}, core.Errorf(core.CodeNotFound, "no message is queued")
}

func (m *fakeConversations) WithdrawQueued(ctx context.Context, ref core.ConversationRef) (core.QueuedMessage, error) {
	return m.QueuedMessage(ctx, ref)
}

func (m *fakeConversations) SaveUnfinished(context.Context, core.ConversationRef, *core.Message) error {
	return nil
}

func (m *fakeConversations) AppendMessages(_ context.Context, ref core.ConversationRef, add []core.Message, used ...core.Usage) (core.Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.find(ref)
	if err != nil {
		return core.Conversation{}, err
	}
	m.messages[ref.ID] = append(m.messages[ref.ID], add...)
	for _, a := range add {
		c.MessageCount, c.Preview = c.MessageCount+1, a.Content
	}
	for _, u := range used {
		c.InputTokens, c.OutputTokens, c.LastModel = c.InputTokens+u.InputTokens, c.OutputTokens+u.OutputTokens, u.Model
	}
	return *c, nil
}

func (m *fakeConversations) Shared() bool { return false }

func (m *fakeConversations) PutUsage(context.Context, core.Usage) error { return nil }

func (m *fakeConversations) PutToolVerdicts(context.Context, ...core.ToolVerdict) error { return nil }

func (m *fakeConversations) ToolVerdicts(context.Context, string, time.Time) ([]core.ToolVerdict, error) {
	return nil, nil
}

func (m *fakeConversations) Usage(_ context.Context, q core.UsageQuery) (core.UsageReport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, q)
	return m.report, nil
}

func (m *fakeConversations) WorkspaceInstructions(_ context.Context, workspace string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.instructions[workspace], nil
}

func (m *fakeConversations) SetWorkspaceInstructions(_ context.Context, workspace, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instructions[workspace] = text
	return nil
}

func (m *fakeConversations) Setting(ctx context.Context, name string) (string, error) {
	return m.settings.Setting(ctx, name)
}

func (m *fakeConversations) PutSetting(ctx context.Context, name, value string) error {
	return m.settings.PutSetting(ctx, name, value)
}

// newChat returns the real chat engine with an in-memory store and the models of c.
func newChat(t testing.TB, conversations *fakeConversations, tools chat.Tools, c config.Models, limit ...func(*chat.Options)) *chat.Engine {
	t.Helper()
	models, err := chat.NewModels(c)
	if err != nil {
		t.Fatal(err)
	}
	o := chat.Options{
		Store: conversations, Tools: tools, Models: models, Skills: skill.NewLibrary("testdata", nil, hclog.NewNullLogger()), Logger: hclog.NewNullLogger(),
	}
	for _, set := range limit {
		set(&o)
	}
	e := chat.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// speaker is a provider with OpenAI's protocol that sends the parts one after another. If hold is set, it waits for a
// value from hold before it sends the last part. It signals left if its client disconnects while it waits.
type speaker struct {
	url  string
	hold chan struct{}
	held chan struct{} // receives a value when an answer is held
	left chan struct{}
}

func newSpeaker(t testing.TB, status int, parts ...string) *speaker {
	t.Helper()
	s := &speaker{held: make(chan struct{}, 8), left: make(chan struct{}, 8)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has disconnected
		if status != http.StatusOK {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"no","type":"x"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i, part := range parts {
			if i == len(parts)-1 && s.hold != nil {
				s.held <- struct{}{}
				select {
				case <-s.hold:
				case <-r.Context().Done():
					s.left <- struct{}{}
					return
				}
			}
			quoted, _ := json.Marshal(part)
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quoted)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// talking returns the model configuration for chatting with a speaker.
func talking(s *speaker) config.Models {
	return config.Models{
		Default: "local:m", MaxOutputTokens: 100,
		Providers: map[string]config.ModelProvider{"local": {Type: config.ProviderOpenAI, BaseURL: strings.TrimSuffix(s.url, "/")}},
	}
}
