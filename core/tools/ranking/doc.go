// Package ranking finds the tools that match a query: BM25F over the names, titles, descriptions and arguments of
// tools.
//
// It owns words and weights. Package tools decides who may see which tool.
package ranking
