package source

import "github.com/ropewalk/ropewalk/core"

// Kind returns the kind of source that r names, or core.CodeBadRequest when it names none or several.
func (r Request) Kind() (core.SourceKind, error) {
	var kinds []core.SourceKind
	for _, source := range []struct {
		kind core.SourceKind
		ref  string
	}{
		{core.SourceName, r.Name}, {core.SourcePath, r.Path}, {core.SourceURL, r.URL},
		{core.SourceNPM, r.NPM}, {core.SourcePyPI, r.PyPI}, {core.SourceCommand, r.Command},
	} {
		if source.ref != "" {
			kinds = append(kinds, source.kind)
		}
	}
	if len(kinds) != 1 {
		return "", badRequest("give exactly one of name, path, url, npm, pypi and command; %d were given", len(kinds))
	}
	return kinds[0], nil
}
