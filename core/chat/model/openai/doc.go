// Package openai calls models over OpenAI's Chat Completions API, which Ollama, vLLM, OpenRouter
// and many others speak too: a base URL is all that differs. It is the one door to OpenAI's SDK,
// whose own environment variables and retries are off.
//
// It does not ask for caching: OpenAI caches by itself, and tells in the usage what it took from
// the cache.
package openai
