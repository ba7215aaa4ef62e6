package chat

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/russross/blackfriday/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

const (
	titlesAtOnce = 4
	titleTimeout = 30 * time.Second
	titleLength  = 80   // characters
	titleSource  = 2000 // characters of each message that a title is made of
	titleTokens  = 64

	titlePrompt = "Write a title for the conversation that the person's message begins. At most six words, in the person's language, " +
		"no quotation marks, no full stop. Answer with the title alone."
)

// titles is the background work of finding titles.
type titles struct {
	ctx  context.Context // ends with the server
	stop context.CancelFunc
	free chan struct{} // a place for each search at a time
	wg   *sync.WaitGroup
	mu   *sync.Mutex // guards adding to wg against close
}

func newTitles() titles {
	t := titles{free: make(chan struct{}, titlesAtOnce), wg: &sync.WaitGroup{}, mu: &sync.Mutex{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

func (t titles) close(ctx context.Context) error {
	t.mu.Lock()
	t.stop()
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start does something in the background, unless the server is stopping.
func (t titles) start(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil {
		t.wg.Go(do)
	}
}

// startTitle finds a title for a conversation in the background, unless too many are being found: then
// the next run tries.
func (e *Engine) startTitle(c core.Caller, ref core.ConversationRef, message, answer string) {
	t := e.titles
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	select {
	case t.free <- struct{}{}:
	default:
		return
	}
	t.wg.Go(func() {
		defer func() { <-t.free }()
		ctx, cancel := context.WithTimeout(t.ctx, titleTimeout)
		defer cancel()
		if err := e.findTitle(ctx, c, ref, message, answer); err != nil && t.ctx.Err() == nil && core.CodeOf(err) != core.CodeNotFound {
			e.log.Debug("no title found for a conversation", "conversation", ref.ID, "error", err)
		}
	})
}

func (e *Engine) findTitle(ctx context.Context, c core.Caller, ref core.ConversationRef, message, reply string) error {
	llm, err := e.selectFastModel(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	answer, err := model.Call(ctx, llm.provider, llm.name, model.Request{
		System: []string{titlePrompt}, MaxTokens: titleTokens,
		Messages: []model.Message{model.Said(model.User, "The person wrote:\n"+head(message, titleSource)+"\n\nThe assistant answered:\n"+head(reply, titleSource))},
	}, func(string) {}, func(*model.Error, time.Duration) {})
	used := llm.usage(c, answer.Usage, start)
	e.metrics.ModelCall(used, err != nil && ctx.Err() == nil)
	if answer.Usage != (model.Usage{}) {
		used.Conversation = ref.ID
		if err := e.store.PutUsage(ctx, used); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	title := cleanTitle(answer.Text())
	if title == "" {
		return nil
	}
	changed, err := e.store.UpdateConversation(ctx, ref, core.ConversationPatch{Title: &title, OnlyUntitled: true})
	if err == nil && changed.Title == title {
		e.publishTitle(ref, title)
	}
	return err
}

// publishTitle announces a title to the owner of a conversation, and to nobody else.
func (e *Engine) publishTitle(ref core.ConversationRef, title string) {
	if e.events == nil {
		return
	}
	e.events.Publish(core.Event{
		Name: core.EventConversationUpdated, Workspace: ref.Workspace, Owner: ref.Owner,
		Data: core.ConversationUpdated{ID: ref.ID, Title: title},
	})
}

// cleanTitle is the first line of a model's answer as plain text, without quotation marks around it.
func cleanTitle(text string) string {
	text = strings.TrimSpace(reasoning.ReplaceAllLiteralString(text, ""))
	title := firstLine(plainText(text))
	if line := firstLine(text); title == "" && strings.ContainsFunc(line, isWordly) { // nothing but markers
		title = firstLine(untagged(line))
	}
	return strings.TrimSpace(head(title, titleLength))
}

// firstLine is the first line of a text that has one, without quotation marks around it and a full stop.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.Trim(strings.TrimSpace(first), "\"'“”‘’«»„` "), "."))
}

func isWordly(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// head is the first n characters of a text.
func head(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}

var (
	// reasoning is what some models write before their answer; it has no end when the answer was cut.
	reasoning = regexp.MustCompile(`(?is)^\s*<(?:think|thinking|reasoning)>.*?(?:</(?:think|thinking|reasoning)>|\z)`)
	// beginning is what Markdown takes at the beginning of a text for the marker of an item, as in "1. FC" and "+ 1".
	beginning = regexp.MustCompile(`^\s*(?:\d+[.)]|\+)[ \t]+`)
	// tag is a tag of HTML that formats text, and a comment. What else stands between < and > is text, as in List<int>.
	tag = regexp.MustCompile(`(?is)<!--.*?-->|</?(?:a|b|big|blockquote|center|code|del|div|em|font|h[1-6]|hr|html|body|head|title|i|img|ins|kbd|li|mark|ol|p|pre|` +
		`q|s|small|span|strike|strong|sub|sup|tt|u|ul)(?:\s[^<>]*)?/?>`)
	lineBreak = regexp.MustCompile(`(?i)<br\s*/?>`)
	// ambiguous is code, which stays; what begins a line as the target of links does; and what may be emphasized.
	ambiguous = regexp.MustCompile("(?m)`+[^`]*`+|^ {0,3}\\[[^\\]\n]+\\]:|_{1,3}[^\\s_](?:[^\n_]*[^\\s_])?_{1,3}")
)

// untagged is a text without tags; a line break within it becomes a space.
func untagged(html string) string {
	return tag.ReplaceAllLiteralString(lineBreak.ReplaceAllLiteralString(html, " "), "")
}

// escaped is a Markdown text in which the brackets of "[Fix]: login" and the underscores within names are text.
func escaped(markdown string) string {
	var b strings.Builder
	end := 0
	for _, at := range ambiguous.FindAllStringIndex(markdown, -1) {
		found := markdown[at[0]:at[1]]
		b.WriteString(markdown[end:at[0]])
		end = at[1]
		switch {
		case found[0] == '_' && withinName(markdown[:at[0]], markdown[at[1]:]):
			found = strings.ReplaceAll(found, "_", `\_`)
		case found[0] != '_' && found[0] != '`':
			found = strings.Replace(found, "[", `\[`, 1)
		}
		b.WriteString(found)
	}
	b.WriteString(markdown[end:])
	return b.String()
}

// withinName reports whether what stands between two texts is a part of a word, a path or the name of a file.
func withinName(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, size := utf8.DecodeRuneInString(after)
	beyond, _ := utf8.DecodeRuneInString(after[size:])
	return isWordly(last) || strings.ContainsRune("/.-", last) || isWordly(next) ||
		strings.ContainsRune("/.-:(", next) && (isWordly(beyond) || strings.ContainsRune("_)", beyond))
}

// plainText is a text without the markers of Markdown and the tags of HTML: of links the words, of blocks the lines.
func plainText(markdown string) string {
	first := beginning.FindString(markdown)
	var b strings.Builder
	b.WriteString(first)
	parser := blackfriday.New(blackfriday.WithExtensions(
		blackfriday.NoIntraEmphasis | blackfriday.Strikethrough | blackfriday.Autolink | blackfriday.SpaceHeadings | blackfriday.FencedCode))
	parser.Parse([]byte(escaped(markdown[len(first):]))).Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		switch n.Type { // the others have no text of their own
		case blackfriday.Softbreak, blackfriday.Hardbreak:
			b.WriteByte('\n')
		case blackfriday.Paragraph, blackfriday.Heading, blackfriday.CodeBlock:
			b.Write(n.Literal)
			if !entering || n.Type == blackfriday.CodeBlock { // a block of code is entered, not left
				b.WriteByte('\n')
			}
		case blackfriday.HTMLSpan, blackfriday.HTMLBlock:
			b.WriteString(untagged(string(n.Literal)))
		default:
			if entering {
				b.Write(n.Literal)
			}
		}
		return blackfriday.GoToNext
	})
	return b.String()
}
