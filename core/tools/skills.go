package tools

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// The skills of apps (MCP extension io.modelcontextprotocol/skills) are passed on as the apps describe them, with their
// digests. Only the URIs change: each contains its app, because two apps may use the same one. A workspace's own skills
// are listed like those of an app named system.

// Skills reads the workspaces' own skills. *skill.Library implements it.
type Skills interface {
	// Served returns the skill with that name, or all skills if name is "".
	Served(workspace, name string) []core.ServedSkill
}

const (
	skillsTimeout = 10 * time.Second // for the skills of one app
	maxSkillPages = 20               // pages of one app's list
	maxSkillApps  = 8                // asked at once
	maxSkillBytes = 4 << 20          // bytes of one app's list
)

// ListSkills implements skills/list: all skills of the workspace and of the apps that the caller sees, by server name.
// An app that does not answer in time, or that the caller must log in to first, is left out.
func (n *Namespace) ListSkills(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	if member(q.Params, "cursor") != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params.cursor did not come from this server: the list of skills has only one page")
	}
	servers := slices.DeleteFunc(append(slices.Clone(n.o.Apps.Skilled(c.Workspace.ID)), SystemServer), func(server string) bool {
		return !n.showsSkills(n.lists(c, q.From), server)
	})
	slices.Sort(servers)
	found := make([][]json.RawMessage, len(servers))
	var asking errgroup.Group
	asking.SetLimit(maxSkillApps)
	for i, server := range servers {
		if server == SystemServer {
			for _, s := range n.ownSkills(c, q.From, "") {
				found[i] = append(found[i], ownEntry(s))
			}
			continue
		}
		asking.Go(func() error {
			ctx, stop := context.WithTimeout(ctx, skillsTimeout)
			defer stop()
			var err error
			if found[i], err = n.skillsOf(ctx, c, q.From, server); err != nil {
				n.o.Logger.Debug("left out an app's skills", "app", server, "workspace", c.Workspace.ID, "error", err)
			}
			return nil
		})
	}
	_ = asking.Wait() // an app that fails is left out
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return rawjson.Set([]byte(`{}`), rawjson.Member{Name: "skills", Value: rawjson.Array(slices.Concat(found...))})
}

// showsSkills reports whether the caller that lists was made for sees an app's skills. While some of the app's tools
// are held back, nobody sees its skills, not even under a view that hides these tools: the skills may have changed
// together with the tools.
func (n *Namespace) showsSkills(lists *mergedLists, server string) bool {
	return lists.shown.ShowsApp(server) && !slices.ContainsFunc(lists.offer.Held, func(t core.HeldTool) bool { return t.Server == server })
}

func (n *Namespace) skillsOf(ctx context.Context, c core.Caller, from From, server string) ([]json.RawMessage, error) {
	all := &skillList{server: server, listed: map[string]bool{}}
	params, cursor, size := json.RawMessage(`{}`), "", 0
	for range maxSkillPages {
		result, err := n.askForSkills(ctx, c, from, server, "skills/list", server, params)
		if err != nil {
			return nil, err
		}
		if size += len(result); size > maxSkillBytes {
			return nil, fmt.Errorf("the app's list of skills has more than %d bytes", maxSkillBytes)
		}
		var page struct {
			Skills     []json.RawMessage `json:"skills"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, fmt.Errorf("the app's list of skills: %w", err)
		}
		for _, entry := range page.Skills {
			all.add(entry)
		}
		if page.NextCursor == "" || page.NextCursor == cursor {
			break
		}
		cursor = page.NextCursor
		if params, err = json.Marshal(map[string]string{"cursor": cursor}); err != nil {
			return nil, err
		}
	}
	n.reportLeftOut(c.Workspace.ID, all)
	return all.skills, nil
}

// GetSkill implements skills/get. The error is core.CodeBadRequest if there is no URI, and core.CodeNotFound if the
// caller sees no skill with that URI. Other errors are those of Call.
func (n *Namespace) GetSkill(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	uri, err := text(q.Params, "uri")
	if err != nil {
		return nil, err
	}
	if name, path, own := ownSkill(uri); own && path == skillMain {
		if found := n.ownSkills(c, q.From, name); len(found) > 0 {
			return rawjson.Set([]byte(`{}`), rawjson.Member{Name: "skill", Value: ownEntry(found[0])})
		}
	}
	at, ok := n.skillRef(n.lists(c, q.From), c.Workspace.ID, uri)
	if !ok {
		return nil, core.Errorf(core.CodeNotFound, "there is no skill %.200q in this workspace", uri)
	}
	params, err := json.Marshal(map[string]string{"uri": at.uri})
	if err != nil {
		return nil, err
	}
	result, err := n.askForSkills(ctx, c, q.From, at.server, "skills/get", uri, params)
	if err != nil {
		return nil, err
	}
	skill := member(result, "skill")
	if own := rawjson.Text(member(skill, "uri")); own != at.uri {
		return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: fmt.Sprintf("the app answered with a different skill, %.200q", own)}
	}
	if _, err = checkSkill(skill); err == nil {
		skill, err = withSkillURIs(skill, at.server)
	}
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app answered with an invalid skill: " + err.Error()}
	}
	return rawjson.Set(result, rawjson.Member{Name: "skill", Value: skill})
}

// skillRef returns the resource that uri, the URI of a file in a skill, refers to.
func (n *Namespace) skillRef(lists *mergedLists, workspace, uri string) (at resourceRef, ok bool) {
	rest, ok := strings.CutPrefix(uri, perApp)
	scheme := ""
	if !ok {
		rest, ok = strings.CutPrefix(uri, skillScheme)
		scheme = skillScheme
	}
	if !ok {
		return resourceRef{}, false
	}
	server, inner, _ := strings.Cut(rest, "/")
	if inner == "" || !slices.Contains(n.o.Apps.Skilled(workspace), server) || !n.showsSkills(lists, server) {
		return resourceRef{}, false
	}
	return resourceRef{server, scheme + inner}, true
}

// skillScheme is the scheme that most servers use for the files of skills.
const skillScheme = "skill://"

// skillURI returns the URI of a file in a skill, including the app's name. It keeps the scheme skill://, because hosts
// expect it.
func (r resourceRef) skillURI() string {
	if inner, ok := strings.CutPrefix(r.uri, skillScheme); ok {
		return skillScheme + r.server + "/" + inner
	}
	return r.listed()
}

// askForSkills sends an app a request about its skills. name is the target of the request in the audit log.
func (n *Namespace) askForSkills(ctx context.Context, c core.Caller, from From, server, method, name string, params json.RawMessage) (json.RawMessage, error) {
	r := &appRequest{Request: Request{Params: params, From: from}, n: n, caller: c, method: method, name: name}
	r.find = func() error {
		if !n.showsSkills(n.lists(r.caller, from), server) {
			return core.Errorf(core.CodeNotFound, "the app %q has no skills in this workspace", server)
		}
		r.server, r.params = server, params
		return nil
	}
	result, _, err := n.perform(ctx, c, r)
	return result, err
}

// withSkillURIs replaces the URIs in an app's skill with those that contain the app. Everything else remains as the app
// wrote it. checkSkill must have accepted the skill.
func withSkillURIs(skill json.RawMessage, server string) (json.RawMessage, error) {
	var edit func(name string, value json.RawMessage) (json.RawMessage, error)
	edit = func(name string, value json.RawMessage) (json.RawMessage, error) {
		switch {
		case name == "uri":
			return rawjson.Quote(resourceRef{server, rawjson.Text(value)}.skillURI()), nil
		case name == "resources" && value[0] == '[':
			return rawjson.EditElements(value, func(file json.RawMessage) (json.RawMessage, error) { return rawjson.Edit(file, edit) })
		}
		return nil, nil
	}
	return rawjson.Edit(skill, edit)
}

const (
	ownSkillPrefix = skillScheme + SystemServer + "/"
	skillMain      = "SKILL.md" // the file that every skill has
)

// ownSkills returns the workspace's own skills that the caller sees: the one with that name, or all if name is "".
func (n *Namespace) ownSkills(c core.Caller, from From, name string) []core.ServedSkill {
	if n.o.Skills == nil || !n.showsSkills(n.lists(c, from), SystemServer) {
		return nil
	}
	return n.o.Skills.Served(c.Workspace.ID, name)
}

// ownSkill splits a URI of one of the workspace's own skills into the skill's name and the file's path.
func ownSkill(uri string) (name, path string, ok bool) {
	rest, ok := strings.CutPrefix(uri, ownSkillPrefix)
	name, path, _ = strings.Cut(rest, "/")
	path, err := url.PathUnescape(path)
	return name, path, ok && err == nil && name != "" && path != ""
}

// ownEntry describes one of the workspace's own skills.
func ownEntry(s core.ServedSkill) json.RawMessage {
	files := make([]json.RawMessage, len(s.Files))
	for i, f := range s.Files {
		files[i] = fmt.Appendf(nil, `{"uri":%s,"digest":"sha256:%x","size":%d}`, ownFileURI(s, f), sha256.Sum256(f.Content), len(f.Content))
	}
	main := ownFileURI(s, core.SkillFile{Path: skillMain})
	return fmt.Appendf(nil, `{"uri":%s,"frontmatter":%s,"resources":%s}`, main, s.Frontmatter, rawjson.Array(files))
}

// ownFileURI returns the URI of a file as JSON.
func ownFileURI(s core.ServedSkill, f core.SkillFile) json.RawMessage {
	return rawjson.Quote(ownSkillPrefix + s.Name + "/" + (&url.URL{Path: f.Path}).EscapedPath())
}

// readOwnSkill reads a file of one of the workspace's own skills. The error is core.CodeResourceNotFound if there is no
// such file.
func (n *Namespace) readOwnSkill(ctx context.Context, c core.Caller, q Request, uri, skill, path string) (json.RawMessage, error) {
	var file core.SkillFile
	r := &appRequest{Request: q, n: n, caller: c, method: "resources/read", name: uri}
	r.find = func() error {
		for _, s := range n.ownSkills(c, q.From, skill) {
			for _, f := range s.Files {
				if f.Path == path {
					file = f
					return nil
				}
			}
		}
		return noResource(uri)
	}
	r.answer = func(context.Context) (json.RawMessage, error) { return fileContents(uri, file) }
	result, _, err := n.perform(ctx, c, r)
	return result, err
}

// fileContents returns the result of reading a file of a skill.
func fileContents(uri string, file core.SkillFile) (json.RawMessage, error) {
	content := map[string]any{"uri": uri, "mimeType": "text/markdown"}
	if !strings.EqualFold(path.Ext(file.Path), ".md") {
		content["mimeType"] = http.DetectContentType(file.Content)
	}
	if utf8.Valid(file.Content) {
		content["text"] = string(file.Content)
	} else {
		content["blob"] = file.Content
	}
	return json.Marshal(map[string]any{"contents": []any{content}})
}
