// Package skill keeps the skills: Markdown files that tell a model how to do something.
//
// It owns reading them (YAML front matter and text), noticing that a file changed, writing and
// removing those of a workspace, and choosing the one that a message asks for.
//
// A folder is read again when a file in it is another one than before; no process watches it. A
// file that cannot be read leaves its skill out and is told of in the log once, until it changes.
//
// It is apart because what a skill is has nothing to do with how a run goes.
package skill
