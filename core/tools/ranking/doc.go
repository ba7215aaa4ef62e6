// Package ranking finds the tools that fit a query: BM25F over the names, titles, descriptions and arguments of tools.
//
// It owns words and weights. Who may see which tool is the namespace's business (core/tools).
package ranking
