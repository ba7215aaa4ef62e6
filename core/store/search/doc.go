// Package search finds conversations by their words.
//
// It owns the inverted index of the words of titles and messages. Each word of a conversation is first written
// as a separate row. Compaction, which runs in the background, turns these rows into one compressed set of
// conversation numbers for each word and page of 65,536 conversations. The package also chooses between going
// through the conversations in order and using the index.
//
// It does not return conversations but their numbers. A collection contains one person's conversations in one
// workspace, and a search reads only one collection.
package search
