// Package plaintext takes the markers of Markdown and the tags of HTML out of what models write.
//
// It makes the titles of conversations, which are shown where nothing is formatted. Answers keep their Markdown: clients
// format them.
package plaintext
