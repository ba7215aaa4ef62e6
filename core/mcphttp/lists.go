package mcphttp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// pageBytes is the size at which a page of a list ends. It is more than any real workspace needs and less than any
// client's limit.
const pageBytes = 8 << 20

// list returns one of the lists as this request's caller sees it, in the namespace's order. A list that fits on one
// page is sent in the namespace's cached encoding.
func (e *Endpoint) list(k *call, kind core.Kind) ([][]byte, error) {
	open, cursor := `{"`+string(kind)+`":`, k.Param("cursor")
	if cursor == nil {
		open = `{` + e.missing(k.caller, kind) + open[1:]
		if list := e.o.Tools.ListJSON(k.caller, k.from(), kind); len(list) < pageBytes {
			return [][]byte{[]byte(open), list, {'}'}}, nil
		}
	}
	all, start := e.o.Tools.ItemsFor(k.caller, k.from(), kind), 0
	if cursor != nil {
		if start = pageStart(all, cursor); start < 0 {
			return nil, invalidParams("this cursor did not come from %s; start again without it", k.Method)
		}
	}
	raw, end := []byte(open+"["), start
	for end < len(all) && (end == start || len(raw)+len(all[end].Raw) < pageBytes) {
		if end > start {
			raw = append(raw, ',')
		}
		raw = append(raw, all[end].Raw...)
		end++
	}
	raw = append(raw, ']')
	if end < len(all) {
		raw = append(raw, `,"nextCursor":"`+cursorAfter(all, end)+`"`...)
	}
	return [][]byte{append(raw, '}')}, nil
}

// metaMissing is the _meta member, in a list of tools, with the apps whose tools are missing.
const metaMissing = "ropewalk/missing"

// missing returns the _meta member of the first page of a list, with a comma, or "" if no app's tools are missing.
func (e *Endpoint) missing(c core.Caller, kind core.Kind) string {
	if kind != core.KindTools {
		return ""
	}
	apps := e.o.Tools.Missing(c)
	if len(apps) == 0 {
		return ""
	}
	return fmt.Sprintf(`"_meta":{%q:%s},`, metaMissing, encode(apps))
}

// cursorAfter returns the cursor of the page that starts at end. It contains the position and the name of the previous
// item, because an app may list a name twice, and positions move when a list changes.
func cursorAfter(all []tools.Item, end int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end) + " " + all[end-1].Name))
}

// pageStart returns where the page of a cursor starts, or -1 if the cursor is malformed or refers to an item that is
// not in the list.
func pageStart(all []tools.Item, cursor json.RawMessage) int {
	var text string
	if json.Unmarshal(cursor, &text) != nil {
		return -1
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	position, name, ok := strings.Cut(string(decoded), " ")
	if err != nil || !ok {
		return -1
	}
	if end, err := strconv.Atoi(position); err == nil && end > 0 && end <= len(all) && all[end-1].Name == name {
		return end
	}
	at := slices.IndexFunc(all, func(i tools.Item) bool { return i.Name == name })
	if at < 0 {
		return -1
	}
	return at + 1
}

// headerSurface contains the surface that a client wants. The query parameter surface does the same, because some
// clients cannot send custom headers.
const headerSurface = "X-Tools-Surface"

// chooseSurface sets the surface of a list: the one that the request chooses, or else the caller's. It also records
// whether the client wants results that fit its limit.
func (e *Endpoint) chooseSurface(c *fiber.Ctx, k *call) *fault {
	if k.Method != "tools/list" {
		return nil
	}
	k.shortResults = tools.AsksToFit(k.Param("_meta"))
	header, once := rawHeader(c, headerSurface)
	if k.surface = tools.Surface(header); header == nil {
		k.surface = cmp.Or(tools.Surface(c.Query("surface")), e.o.Tools.SurfaceFor(k.caller))
	}
	if !once || k.surface != tools.SurfaceFull && k.surface != tools.SurfaceSearch {
		message := fmt.Sprintf("%s, or the query parameter surface, is %q; it must be %s or %s", headerSurface, clip(string(k.surface)), tools.SurfaceFull, tools.SurfaceSearch)
		return badRequest(rpc.CodeInvalidRequest, message).of(k.ID)
	}
	return nil
}
