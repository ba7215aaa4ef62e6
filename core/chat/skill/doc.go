// Package skill manages the skills: Markdown files with instructions for a model.
//
// It reads them (YAML front matter and text), writes and removes those of a workspace, and finds the
// skill that a message names.
//
// A folder is read again when one of its files has changed since the last run; it is not watched. A file
// that cannot be read is left out, and logged once until it changes.
//
// It does not know how a run uses a skill.
package skill
