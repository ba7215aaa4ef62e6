// Package skill manages skills: Markdown files with instructions for a model.
//
// It reads them (YAML front matter and text), writes and removes a workspace's own, and finds the skill that a
// message asks for.
//
// A file is read again if it has changed since the folder was last used; folders are not watched. A file that cannot
// be read is skipped, and logged once until it changes.
//
// The package does not know how a run uses a skill.
package skill
