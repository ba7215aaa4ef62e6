package chat

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/config"
)

const (
	maxAttachments    = 10
	maxAttachment     = 5 << 20  // bytes per attachment
	maxAttachmentsAll = 10 << 20 // bytes per message, all attachments together
	maxAttachmentName = 200      // characters
	maxAttachmentURL  = 2048     // bytes
)

// Attachment is a file that a person sends with a message. It has either content (Data) or, for an image, an address
// (URL).
type Attachment struct {
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data,omitempty"` // base64
	URL      string `json:"url,omitempty"`  // https
}

// shownAttachment is the reference to an attachment in the metadata of its message.
type shownAttachment struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     int    `json:"size,omitempty"` // bytes; 0 for a file at another address
	URL      string `json:"url"`
}

// userMetadata is the metadata of a person's message.
type userMetadata struct {
	Attachments []shownAttachment `json:"attachments"`
}

// checkAttachments returns core.CodeBadRequest for invalid attachments, and core.CodePayloadTooLarge for attachments
// that are too large.
func checkAttachments(all []Attachment) error {
	if len(all) > maxAttachments {
		return core.Errorf(core.CodeBadRequest, "attachments has %d files; the limit is %d per message", len(all), maxAttachments)
	}
	total := 0
	for i, a := range all {
		if err := a.check(i); err != nil {
			return err
		}
		if total += base64.StdEncoding.DecodedLen(len(a.Data)); total > maxAttachmentsAll+3*len(all) {
			return core.Errorf(core.CodePayloadTooLarge, "attachments exceed %d MiB in total", maxAttachmentsAll>>20)
		}
	}
	return nil
}

// check validates an attachment; i is its index in the request, for error messages.
func (a Attachment) check(i int) error {
	switch n := utf8.RuneCountInString(a.Name); {
	case n == 0 || n > maxAttachmentName || a.Name == "." || a.Name == ".." || strings.ContainsFunc(a.Name, notInNames):
		return core.Errorf(core.CodeBadRequest, "attachments[%d].name must be a file name of 1 to %d characters, without control characters", i, maxAttachmentName)
	case (a.Data == "") == (a.URL == ""):
		return core.Errorf(core.CodeBadRequest, "attachments[%d] must have either data or url", i)
	case base64.StdEncoding.DecodedLen(len(a.Data)) > maxAttachment+2:
		return core.Errorf(core.CodePayloadTooLarge, "attachments[%d].data is larger than %d MiB", i, maxAttachment>>20)
	}
	if _, err := base64.StdEncoding.DecodeString(a.Data); err != nil {
		return core.Errorf(core.CodeBadRequest, "attachments[%d].data is not base64", i)
	}
	return a.checkType(i)
}

// notInNames reports whether a character may not appear in a file name. This includes characters that change the
// direction of text, which could disguise the file's extension.
func notInNames(r rune) bool {
	return r == '/' || r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// mediaType returns the normalized type in which an attachment is stored, sent and served: in lower case, with
// charset as the only parameter. It returns application/octet-stream for an invalid type.
func (a Attachment) mediaType() string {
	media, parameters, err := mime.ParseMediaType(a.MIMEType)
	if err != nil {
		return "application/octet-stream"
	}
	if charset := parameters["charset"]; charset != "" {
		return mime.FormatMediaType(media, map[string]string{"charset": strings.ToLower(charset)})
	}
	return media
}

// checkType accepts the types that the models of every provider support.
func (a Attachment) checkType(i int) error {
	media, _, err := mime.ParseMediaType(a.MIMEType)
	b := model.Block{MIMEType: a.mediaType()}
	known := media == "application/pdf" || media == "image/png" || media == "image/jpeg" || media == "image/gif" || media == "image/webp" || b.IsText()
	if err != nil || !known {
		return core.Errorf(core.CodeBadRequest, "attachments[%d].mimeType must be image/png, image/jpeg, image/gif, image/webp, application/pdf or a text type", i)
	}
	if a.URL == "" {
		return nil
	}
	if !IsAttachmentURL(a.URL) || !strings.HasPrefix(a.URL, "https://") {
		return core.Errorf(core.CodeBadRequest, "attachments[%d].url must be an https address of at most %d bytes", i, maxAttachmentURL)
	}
	if !b.IsImage() {
		return core.Errorf(core.CodeBadRequest, "attachments[%d].url is only for images; send other files as data", i)
	}
	return nil
}

// IsAttachmentURL reports whether an attachment may have this address: HTTPS, without a user name or password, not too
// long, and without invisible characters that could disguise it.
func IsAttachmentURL(address string) bool {
	at, err := url.Parse(address)
	hidden := func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
	}
	return err == nil && len(address) <= maxAttachmentURL && at.Scheme == "https" && at.Hostname() != "" && at.User == nil && !strings.ContainsFunc(address, hidden)
}

// allowAttachments returns core.CodeFeatureDisabled for attachments while their feature flag is off.
func (e *Engine) allowAttachments(all []Attachment) error {
	if len(all) == 0 || e.features == nil || e.features.Enabled(config.FlagFileContext) {
		return nil
	}
	return core.Errorf(core.CodeFeatureDisabled, "attachments are off because the feature flag %s is false", config.FlagFileContext)
}

// userMessage returns a person's message in two forms: as it is stored, and as a model receives it.
func userMessage(conversation string, r Request) (core.Message, model.Message, error) {
	stored := core.Message{Role: string(model.User), Content: r.Message}
	if len(r.Attachments) == 0 {
		return stored, model.TextMessage(model.User, r.Message), nil
	}
	sent, shown := model.Message{Role: model.User}, userMetadata{}
	for _, a := range r.Attachments {
		content, err := base64.StdEncoding.DecodeString(a.Data)
		if err != nil {
			return stored, sent, err // cannot happen, because check has already decoded it
		}
		id, media := core.RandomID("att_"), a.mediaType()
		reference := shownAttachment{ID: id, Name: a.Name, MIMEType: media, Size: len(content), URL: a.URL}
		if a.URL == "" {
			reference.URL = "/v1/conversations/" + conversation + "/attachments/" + id
			stored.Attachments = append(stored.Attachments, core.Attachment{ID: id, Name: a.Name, MIMEType: media, Content: content})
		}
		shown.Attachments = append(shown.Attachments, reference)
		sent.Blocks = append(sent.Blocks, model.Block{Kind: model.File, ID: id, Name: a.Name, MIMEType: media, URL: a.URL, Data: content})
	}
	if strings.TrimSpace(r.Message) != "" { // providers reject empty text
		sent.Blocks = append(sent.Blocks, model.Block{Kind: model.Text, Text: r.Message})
	}
	var err error
	if stored.Metadata, err = json.Marshal(shown); err == nil {
		stored.Blocks, err = json.Marshal([]model.Message{sent})
	}
	return stored, sent, err
}

// AttachmentsOf returns the attachments of a queued message, in the form in which they were sent.
func AttachmentsOf(q core.QueuedMessage) (all []Attachment) {
	var shown userMetadata
	if len(q.Message.Metadata) == 0 || json.Unmarshal(q.Message.Metadata, &shown) != nil {
		return nil
	}
	contents := map[string][]byte{}
	for _, a := range q.Message.Attachments {
		contents[a.ID] = a.Content
	}
	for _, s := range shown.Attachments {
		a := Attachment{Name: s.Name, MIMEType: s.MIMEType}
		if content, own := contents[s.ID]; own {
			a.Data = base64.StdEncoding.EncodeToString(content)
		} else {
			a.URL = s.URL
		}
		all = append(all, a)
	}
	return all
}

// loadAttachments loads the content of the attachments in earlier messages.
func (e *Engine) loadAttachments(ctx context.Context, ref core.ConversationRef, messages []model.Message) error {
	for _, m := range messages {
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if b.Kind != model.File || b.URL != "" {
				continue
			}
			a, err := e.store.Attachment(ctx, ref, b.ID)
			switch {
			case core.CodeOf(err) == core.CodeNotFound && err != nil: // the conversation was imported without its files
				*b = model.Block{Kind: model.Text, Text: "[The attachment " + b.Name + " is not available.]"}
			case err != nil:
				return err
			default:
				b.Data = a.Content
			}
		}
	}
	return nil
}

// Attachment returns a file attached to a message of a conversation. The error is core.CodeNotFound if there is no
// such file, or the conversation is not the caller's.
func (e *Engine) Attachment(ctx context.Context, c core.Caller, conversation, id string) (core.Attachment, error) {
	return e.store.Attachment(ctx, c.Conversation(conversation), id)
}
