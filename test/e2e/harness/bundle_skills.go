package harness

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// skillFiles returns the files of the skill of TaskApp by URI.
func skillFiles() map[string]string {
	return map[string]string{
		"skill://acme/pdf-filing/SKILL.md":            "---\nname: pdf-filing\ndescription: File PDF documents\nlicense: Apache-2.0\n---\n\nRead references/FORMS.md.\n",
		"skill://acme/pdf-filing/references/FORMS.md": "Forms <are> filed by date.\n",
	}
}

// skillResult returns the response to a request about the skill or its files.
func skillResult(method, uri string) (result, failure map[string]any) {
	files := skillFiles()
	listed := slices.Sorted(maps.Keys(files))
	var resources, manifest []any
	for _, file := range listed {
		resources = append(resources, map[string]any{"uri": file, "name": file, "mimeType": "text/markdown"})
		manifest = append(manifest, map[string]any{"uri": file, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(files[file]))), "size": len(files[file])})
	}
	skill := map[string]any{
		"uri": listed[0], "resources": manifest,
		"frontmatter": map[string]any{"name": "pdf-filing", "description": "File PDF documents", "license": "Apache-2.0"},
	}
	result = map[string]any{"resultType": "complete", "ttlMs": 300_000, "cacheScope": "public"}
	switch {
	case method == "resources/list":
		result["resources"] = resources
	case method == "skills/list":
		result["skills"] = []any{skill}
	case method == "skills/get" && uri == listed[0]:
		result["skill"] = skill
	case method == "resources/read" && files[uri] != "":
		result["contents"] = []any{map[string]any{"uri": uri, "mimeType": "text/markdown", "text": files[uri]}}
	default:
		return nil, map[string]any{"code": -32602, "message": "there is no such resource or skill"}
	}
	return result, nil
}
