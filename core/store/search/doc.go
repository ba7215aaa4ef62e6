// Package search finds conversations by their words.
//
// It owns the inverted index: the words of titles and messages, as a row of its own for each word of a
// conversation when it was written, and after compaction as one compressed set of conversation numbers
// for each word and page of 65,536 conversations. It owns compaction, which runs in the background, and
// the choice between going through an order and going through the index.
//
// It does not read conversations: it returns their numbers. A collection is the conversations of one
// person in one workspace; a search never reads another's.
package search
