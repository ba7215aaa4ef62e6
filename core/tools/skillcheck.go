package tools

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// maxSafeInteger is the largest size that hosts written in JavaScript accept.
const maxSafeInteger = 1<<53 - 1

// checkSkill reports why hosts cannot load an app's skill, and returns its URI. Hosts may refuse a whole list that
// contains such a skill, with the skills of all other apps (SEP-2640, skill entries).
func checkSkill(skill json.RawMessage) (uri string, err error) {
	var entry map[string]json.RawMessage // names of members in another case are other members
	if err := json.Unmarshal(skill, &entry); err != nil {
		return "", errors.New("a skill must be an object")
	}
	name, err := core.CheckSkillFrontmatter(entry["frontmatter"])
	if err != nil {
		return "", fmt.Errorf("frontmatter: %w", err)
	}
	uri = rawjson.Text(entry["uri"])
	root, ok := strings.CutSuffix(uri, "/"+skillMain)
	switch meta := entry["_meta"]; {
	case !ok || !strings.HasSuffix(root, "/"+name):
		return "", fmt.Errorf("uri %.200q must end with /%s/%s", uri, name, skillMain)
	case !validSkillURI(uri):
		return "", fmt.Errorf("uri %.200q must be a valid URI, without a query, a fragment or dot segments", uri)
	case meta != nil && meta[0] != '{':
		return "", errors.New("_meta must be an object")
	case string(entry["resources"]) == `"dynamic"`:
		return uri, nil
	}
	return uri, checkSkillFiles(entry["resources"], uri, root)
}

// checkSkillFiles checks the list of a skill's files. uri is that of SKILL.md, and root that of its folder.
func checkSkillFiles(resources json.RawMessage, uri, root string) error {
	var files []map[string]json.RawMessage
	if err := json.Unmarshal(resources, &files); err != nil {
		return fmt.Errorf("resources must be \"dynamic\" or a list of files: %w", err)
	}
	listed, listsMain := map[string]bool{}, false
	for _, f := range files {
		file := rawjson.Text(f["uri"])
		path, ok := pathInSkill(file, root)
		var size *float64
		switch err := json.Unmarshal(f["size"], &size); {
		case !ok:
			return fmt.Errorf("resources: uri %.200q must be a valid URI in the skill's folder, without a query or fragment", file)
		case listed[path]:
			return fmt.Errorf("resources: uri %.200q is listed more than once", file)
		case err != nil || size == nil || *size < 0 || *size > maxSafeInteger || *size != math.Trunc(*size),
			!digestPattern.MatchString(rawjson.Text(f["digest"])):
			return fmt.Errorf("resources: %.200q needs a digest (sha256: and 64 lower-case hexadecimal digits) and a size in bytes", file)
		}
		listed[path] = true
		listsMain = listsMain || file == uri
	}
	if !listsMain {
		return errors.New("resources must list the skill's own uri")
	}
	return nil
}

// validSkillURI reports whether all hosts read a URI as it is written: browsers' URL parsers remove line breaks, spaces
// at the ends, and segments such as .. from it.
func validSkillURI(uri string) bool {
	_, err := url.PathUnescape(uri)
	return err == nil && strings.TrimSpace(uri) == uri && !strings.ContainsAny(uri, "?#") && !strings.ContainsFunc(uri, unicode.IsControl) &&
		!slices.ContainsFunc(strings.Split(uri, "/"), func(segment string) bool {
			name, _ := url.PathUnescape(segment)
			return name == "." || name == ".."
		})
}

// pathInSkill returns the path, within the skill's folder, of the file that a URI refers to. All spellings of the same
// URI give the same path.
func pathInSkill(uri, root string) (path string, ok bool) {
	inner, ok := strings.CutPrefix(uri, root+"/")
	if !ok || !validSkillURI(uri) {
		return "", false
	}
	for segment := range strings.SplitSeq(inner, "/") {
		name, _ := url.PathUnescape(segment) // validSkillURI has checked it
		if name == "" || strings.ContainsAny(name, "/\x00") || !utf8.ValidString(name) {
			return "", false
		}
		path += "/" + name
	}
	return path, true
}

// skillList collects the skills in an app's list that hosts can load.
type skillList struct {
	server  string
	skills  []json.RawMessage
	listed  map[string]bool // by URI, without percent-encoding
	leftOut []error
}

func (l *skillList) add(entry json.RawMessage) {
	uri, err := checkSkill(entry)
	key, _ := url.PathUnescape(uri)
	if err == nil && l.listed[key] {
		err = fmt.Errorf("uri %.200q is listed more than once", uri)
	}
	var skill json.RawMessage
	if err == nil {
		skill, err = withSkillURIs(entry, l.server)
	}
	if err != nil {
		l.leftOut = append(l.leftOut, err)
		return
	}
	l.listed[key] = true
	l.skills = append(l.skills, skill)
}

// leftOutSkills identifies the skills of an app that are left out of a list, and why.
type leftOutSkills struct {
	workspace, server string
	reasons           [sha256.Size]byte
}

// maxLeftOutSkills is how many lists with invalid skills are remembered, so that each is logged once.
const maxLeftOutSkills = 1000

// reportLeftOut logs that skills are missing in an app's list, unless it has already logged the same.
func (n *Namespace) reportLeftOut(workspace string, l *skillList) {
	if len(l.leftOut) == 0 {
		return
	}
	reasons := sha256.Sum256([]byte(errors.Join(l.leftOut...).Error()))
	if known, _ := n.leftOut.ContainsOrAdd(leftOutSkills{workspace, l.server, reasons}, struct{}{}); !known {
		n.o.Logger.Warn("left out an app's skills, because hosts cannot load them", "app", l.server, "workspace", workspace,
			"skills", len(l.leftOut), "error", l.leftOut[0])
	}
}
