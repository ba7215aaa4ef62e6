package chat_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
)

func encoded(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }

func TestAMessageMayConsistOfAnImageAlone(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.model.Say(t, titled, `{"match":{},"response":{"content":"Seen."}}`)
			answer, _ := h.must(chat.Request{Attachments: []chat.Attachment{{Name: "a.png", MIMEType: "image/png", Data: encoded("the image")}}})
			if answer.Response != "Seen." {
				t.Errorf("%+v", answer)
			}
			for _, asked := range h.asked() {
				if got := text(asked["messages"]); strings.Contains(got, `"text":""`) {
					t.Errorf("empty text was sent, which providers reject: %.500s", got)
				}
			}
		})
	}
}

func TestAttachmentsReachTheModelAndAreKeptByReference(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.model.Say(t, titled, `{"match":{},"response":{"content":"Seen."}}`)
			answer, _ := h.must(chat.Request{Message: "look", Attachments: []chat.Attachment{
				{Name: "a.png", MIMEType: "image/png", Data: encoded("the image")},
				{Name: "b.pdf", MIMEType: "application/pdf", Data: encoded("the document")},
				{Name: "c.txt", MIMEType: "text/plain", Data: encoded("the words")},
				{Name: "d.png", MIMEType: "image/png", URL: "https://example.com/d.png"},
			}})
			h.must(chat.Request{Message: "again", ConversationID: answer.ConversationID})
			for i, asked := range h.asked() {
				got := text(asked["messages"])
				wanted := []string{"the words", "look"}
				if protocol == "openai" { // the fake for the other protocol only records text; the tests of package anthropic cover the rest
					wanted = append(wanted, encoded("the image"), encoded("the document"), "https://example.com/d.png")
				}
				for _, want := range wanted {
					if !strings.Contains(got, want) {
						t.Errorf("call %d has no %q: %.500s", i, want, got)
					}
				}
			}
			messages := must2(h.History(t.Context(), owner(), answer.ConversationID))
			var shown struct {
				Attachments []struct {
					ID, Name, MIMEType, URL string
					Size                    int
				}
			}
			if err := json.Unmarshal(messages[0].Metadata, &shown); err != nil || len(shown.Attachments) != 4 || shown.Attachments[3].URL != "https://example.com/d.png" {
				t.Fatalf("%s, %v", messages[0].Metadata, err)
			}
			first := shown.Attachments[0]
			if first.Size != 9 || first.URL != "/v1/conversations/"+answer.ConversationID+"/attachments/"+first.ID || strings.Contains(string(messages[0].Metadata), encoded("the image")) {
				t.Errorf("%+v", first)
			}
			a, err := h.Attachment(t.Context(), owner(), answer.ConversationID, first.ID)
			if err != nil || string(a.Content) != "the image" || a.MIMEType != "image/png" || a.Name != "a.png" {
				t.Errorf("%+v, %v", a, err)
			}
			for name, c := range map[string]core.Caller{"another person": otherUser(), "another workspace": elsewhere()} {
				if _, err := h.Attachment(t.Context(), c, answer.ConversationID, first.ID); core.CodeOf(err) != core.CodeNotFound {
					t.Errorf("%s: %v", name, err)
				}
			}
			one := 1
			fork, err := h.Fork(t.Context(), owner(), answer.ConversationID, &one)
			if err != nil {
				t.Fatal(err)
			}
			if a, err = h.Attachment(t.Context(), owner(), fork.ID, first.ID); err != nil || string(a.Content) != "the image" {
				t.Errorf("in a fork: %+v, %v", a, err)
			}
		})
	}
}

func TestAttachmentsHaveLimits(t *testing.T) {
	h := open(t, "openai", nil)
	small := chat.Attachment{Name: "a.txt", MIMEType: "text/plain", Data: encoded("x")}
	with := func(change func(*chat.Attachment)) []chat.Attachment {
		a := small
		change(&a)
		return []chat.Attachment{a}
	}
	large := with(func(a *chat.Attachment) { a.Data = encoded(strings.Repeat("x", 4<<20)) })[0]
	for name, c := range map[string]struct {
		all  []chat.Attachment
		code core.Code
		want string
	}{
		"too many":                        {make([]chat.Attachment, 11), core.CodeBadRequest, "10"},
		"an attachment that is too large": {with(func(a *chat.Attachment) { a.Data = encoded(strings.Repeat("x", 5<<20+3)) }), core.CodePayloadTooLarge, "attachments[0].data"},
		"too large in total":              {[]chat.Attachment{large, large, large}, core.CodePayloadTooLarge, "10 MiB in total"},
		"no name":                         {with(func(a *chat.Attachment) { a.Name = "" }), core.CodeBadRequest, "attachments[0].name"},
		"a path":                          {with(func(a *chat.Attachment) { a.Name = "../x" }), core.CodeBadRequest, "attachments[0].name"},
		"a directory":                     {with(func(a *chat.Attachment) { a.Name = ".." }), core.CodeBadRequest, "attachments[0].name"},
		"a control":                       {with(func(a *chat.Attachment) { a.Name = "a\x1b[2Jb" }), core.CodeBadRequest, "attachments[0].name"},
		"a C1 control":                    {with(func(a *chat.Attachment) { a.Name = "a\u009bb" }), core.CodeBadRequest, "attachments[0].name"},
		"another end":                     {with(func(a *chat.Attachment) { a.Name = "invoice\u202efdp.exe" }), core.CodeBadRequest, "attachments[0].name"},
		"a vector image by URL":           {with(func(a *chat.Attachment) { a.Data, a.URL, a.MIMEType = "", "https://x.example/a", "image/svg+xml" }), core.CodeBadRequest, "only for images"},
		"a long url": {with(func(a *chat.Attachment) {
			a.Data, a.URL, a.MIMEType = "", "https://x.example/"+strings.Repeat("a", 2048), "image/png"
		}), core.CodeBadRequest, "2048"},
		"another type":                    {with(func(a *chat.Attachment) { a.MIMEType = "application/zip" }), core.CodeBadRequest, "attachments[0].mimeType"},
		"not base64":                      {with(func(a *chat.Attachment) { a.Data = "%" }), core.CodeBadRequest, "attachments[0].data is not base64"},
		"both":                            {with(func(a *chat.Attachment) { a.URL = "https://x.example/a" }), core.CodeBadRequest, "either data or url"},
		"neither":                         {with(func(a *chat.Attachment) { a.Data = "" }), core.CodeBadRequest, "either data or url"},
		"a text by URL":                   {with(func(a *chat.Attachment) { a.Data, a.URL = "", "https://x.example/a" }), core.CodeBadRequest, "only for images"},
		"an image in the private network": {with(func(a *chat.Attachment) { a.Data, a.URL, a.MIMEType = "", "http://127.0.0.1/a", "image/png" }), core.CodeBadRequest, "https"},
	} {
		_, err := h.Begin(t.Context(), owner(), chat.Request{Message: "m", Attachments: c.all})
		if core.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := h.Recent(t.Context(), owner()); err != nil || len(all) != 0 {
		t.Errorf("conversations were created: %+v, %v", all, err)
	}
}

// The type is used in a header, in a data: URL and in requests to vendors, so it is normalized.
func TestTheTypeOfAnAttachmentIsNormalized(t *testing.T) {
	h := open(t, "openai", nil)
	h.model.Say(t, titled, `{"match":{},"response":{"content":"Seen."}}`)
	for given, want := range map[string]string{
		"IMAGE/PNG": "image/png",
		"text/plain;\r\n\r\na=\"<script>alert(1)</script>\"": "text/plain",
		"text/html; charset=UTF-8; x=y":                      "text/html; charset=utf-8",
		"text/plain\r\n ":                                    "text/plain",
	} {
		answer, _ := h.must(chat.Request{Message: "look", Attachments: []chat.Attachment{{Name: "a", MIMEType: given, Data: encoded("x")}}})
		messages := must2(h.History(t.Context(), owner(), answer.ConversationID))
		var shown struct {
			Attachments []struct{ ID, MIMEType string }
		}
		if err := json.Unmarshal(messages[0].Metadata, &shown); err != nil || len(shown.Attachments) != 1 {
			t.Fatalf("%s, %v", messages[0].Metadata, err)
		}
		a, err := h.Attachment(t.Context(), owner(), answer.ConversationID, shown.Attachments[0].ID)
		if err != nil || a.MIMEType != want || shown.Attachments[0].MIMEType != want {
			t.Errorf("%q is kept as %q and shown as %q (%v), want %q", given, a.MIMEType, shown.Attachments[0].MIMEType, err, want)
		}
	}
}

func TestTheFlagFileContextTurnsAttachmentsOff(t *testing.T) {
	h := open(t, "openai", nil)
	models, err := chat.NewModels(h.config)
	if err != nil {
		t.Fatal(err)
	}
	e := chat.New(chat.Options{
		Store: h.store, Tools: h.tools, Models: models, Logger: hclog.NewNullLogger(), Features: config.Features{config.FlagFileContext: false},
		Skills: skill.NewLibrary(h.home, nil, hclog.NewNullLogger()),
	})
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	_, err = e.Begin(t.Context(), owner(), chat.Request{Message: "m", Attachments: []chat.Attachment{{Name: "a", MIMEType: "text/plain", Data: encoded("x")}}})
	if core.CodeOf(err) != core.CodeFeatureDisabled {
		t.Errorf("%v", err)
	}
	run, err := e.Begin(t.Context(), owner(), chat.Request{Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	run.Abandon()
}
