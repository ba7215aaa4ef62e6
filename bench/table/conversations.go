package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	manyConversations  = 100_000
	fewerConversations = 20_000 // in a quick run
	requestsPerRound   = 5
)

// reading is one way to request a page of conversations.
type reading struct {
	name  string
	query url.Values
	deep  bool // pages far down the list, one after another
}

func readings() []reading {
	search := func(name, words string) reading { return reading{name: name, query: url.Values{"search": {words}}} }
	return []reading{
		{name: "newest"},
		{name: "far down", deep: true},
		search("search, rare word", "seldom077"),
		search("search, frequent word", "often"),
		search("search, two very frequent words", "often always"),
		search("search, word frequent only in old conversations", "formerly"),
		search("search, beginning of a word", "w12"),
		search("search, very frequent word and beginning", "always w12"),
		search("search, no match", "nowhere"),
		{name: "search, two very frequent words, far down", query: url.Values{"search": {"often always"}}, deep: true},
	}
}

// list is a service with many conversations, and a way to request them.
type list struct {
	place
	reading
	url    string
	cursor string // cursor of the next page far down the list
	took   []float64
	found  int
}

// conversations measures requests for a page of a long list of conversations over HTTP, for every kind of
// search and with both databases.
func (b *bench) conversations(ctx context.Context) error {
	n := manyConversations
	if b.o.Quick {
		n = fewerConversations
	}
	places, err := b.places(ctx, "conversations")
	if err != nil {
		return err
	}
	var lists []*list
	for _, p := range places {
		what := fmt.Sprintf("%d conversations, %s", n, p.name)
		if p.missing != nil {
			b.addSkipped(what, p.missing)
			continue
		}
		server, err := b.listed(ctx, p, n)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for _, r := range readings() {
			lists = append(lists, &list{place: p, reading: r, url: server + "/v1/conversations"})
		}
	}
	for _, l := range lists {
		if err := l.seekMiddle(ctx); err != nil {
			return fmt.Errorf("%s: %s: %w", l.place.name, l.reading.name, err)
		}
	}
	for range b.rounds {
		for _, l := range lists {
			for range requestsPerRound {
				if err := l.ask(ctx); err != nil {
					return fmt.Errorf("%s: %s: %w", l.place.name, l.reading.name, err)
				}
			}
		}
	}
	for _, l := range lists {
		b.listRow(fmt.Sprintf("%d conversations, %s: %s, p50", n, l.place.name, l.reading.name), l)
	}
	return nil
}

// listed starts a service that has many conversations, and returns its address.
func (b *bench) listed(ctx context.Context, p place, conversations int) (string, error) {
	s := service{name: p.home, bundle: lightBundle, storage: p.storage, filled: true}
	if _, err := b.home(ctx, b.o.Service, s); err != nil { // creates the directory of the database file
		return "", err
	}
	begin := time.Now()
	if err := b.fill(ctx, p, conversations); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(b.o.Log, "%d conversations written to %s in %.1f s\n", conversations, p.name, time.Since(begin).Seconds())
	c, err := b.service(ctx, s, "")
	return strings.TrimSuffix(c.url, "/mcp"), err
}

func (b *bench) listRow(what string, l *list) {
	slices.Sort(l.took)
	p50, worst := median(l.took), l.took[len(l.took)-1]
	_, _ = fmt.Fprintf(b.o.Log, "%-72s %6.2f ms  worst %6.2f ms  %d found\n", what, p50, worst, l.found)
	b.limit(what, 20, "ms", p50, fmt.Sprintf("worst %.1f ms, %d found", worst, l.found), "")
}

// seekMiddle makes one request to warm up, and goes to the middle of the list if pages far down are to be
// measured.
func (l *list) seekMiddle(ctx context.Context) error {
	if err := l.ask(ctx); err != nil || !l.deep {
		return err
	}
	down := &list{reading: reading{query: url.Values{"limit": {"100"}, "search": l.query["search"]}, deep: true}, url: l.url}
	for seen := 0; seen < l.found/2; seen += 100 {
		if err := down.ask(ctx); err != nil {
			return err
		}
	}
	l.cursor, l.took = down.cursor, nil
	return nil
}

// ask requests one page.
func (l *list) ask(ctx context.Context) error {
	query := url.Values{}
	for name, values := range l.query {
		if len(values) > 0 {
			query[name] = values
		}
	}
	if l.deep && l.cursor != "" {
		query.Set("cursor", l.cursor)
	}
	begin := time.Now()
	page, err := page(ctx, l.url+"?"+query.Encode())
	if err != nil {
		return err
	}
	l.took = append(l.took, milliseconds(time.Since(begin)))
	l.found, l.cursor = page.TotalCount, page.NextCursor
	if l.deep && l.cursor == "" {
		return errors.New("the list ended early")
	}
	if (page.TotalCount > 0) != (len(page.Conversations) > 0) {
		return fmt.Errorf("totalCount is %d, but the page has %d conversations", page.TotalCount, len(page.Conversations))
	}
	return nil
}

// answeredPage contains the fields of a response that are used.
type answeredPage struct {
	Conversations []struct{} `json:"conversations"`
	NextCursor    string     `json:"nextCursor"`
	TotalCount    int        `json:"totalCount"`
}

func page(ctx context.Context, address string) (p answeredPage, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return p, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return p, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return p, fmt.Errorf("the response's status is %s", resp.Status)
	}
	return p, json.NewDecoder(resp.Body).Decode(&p)
}
