// Package openai calls models over OpenAI's Chat Completions API, which Ollama, vLLM, OpenRouter and many
// others speak too: only the base URL differs. It speaks the wire itself: the vendor's SDK is a quarter of
// an executable, for one request.
//
// It does not ask for caching: OpenAI caches by itself, and reports in the usage what came from the cache.
package openai
