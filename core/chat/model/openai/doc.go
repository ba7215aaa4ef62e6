// Package openai calls models over OpenAI's Chat Completions API, which Ollama, vLLM, OpenRouter and many others also
// implement; only the base URL differs. It implements the wire protocol itself, because the vendor's SDK would make
// up a quarter of the executable, for a single request.
//
// It does not request caching: OpenAI caches automatically, and reports cached tokens in the usage.
package openai
