package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// operationKey is the attribute with the operation of a generative AI span.
const operationKey = "gen_ai.operation.name"

// StartAgent starts the span of a chat run. The run's model and tool calls are its children.
func StartAgent(ctx context.Context, conversation, model string) (context.Context, Span) {
	if !Recording(ctx) {
		return ctx, Span{}
	}
	attributes := []attribute.KeyValue{attribute.String(operationKey, "invoke_agent"), attribute.String("gen_ai.agent.name", "ropewalk")}
	return child(ctx, trace.SpanKindInternal, "invoke_agent ropewalk",
		optional(attributes, "gen_ai.conversation.id", conversation, "gen_ai.request.model", model))
}

// Model is a call to a language model.
type Model struct {
	Provider     string // as in the conventions, such as anthropic
	Name         string
	Conversation string // may be ""
	MaxTokens    int
}

// StartModel starts the span of a model call. End it with EndModel.
func StartModel(ctx context.Context, m Model) (context.Context, Span) {
	if !Recording(ctx) {
		return ctx, Span{}
	}
	attributes := []attribute.KeyValue{
		attribute.String(operationKey, "chat"), attribute.Bool("gen_ai.request.stream", true), attribute.Int("gen_ai.request.max_tokens", m.MaxTokens),
	}
	return child(ctx, trace.SpanKindClient, "chat "+clip(m.Name),
		optional(attributes, "gen_ai.provider.name", m.Provider, "gen_ai.request.model", clip(m.Name), "gen_ai.conversation.id", m.Conversation))
}

// ModelUsage contains a model call's usage, and why it ended.
type ModelUsage struct {
	Input, Output         int64 // Input includes the tokens that were read from and written to a cache
	CacheRead, CacheWrite int64
	Finish                string // stop, length or tool_calls
}

// EndModel ends the span of a model call.
func (s Span) EndModel(u ModelUsage, err error) {
	if !s.Recording() {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.Int64("gen_ai.usage.input_tokens", u.Input), attribute.Int64("gen_ai.usage.output_tokens", u.Output),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.CacheRead), attribute.Int64("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite),
	}
	if err == nil {
		attributes = append(attributes, attribute.StringSlice("gen_ai.response.finish_reasons", []string{u.Finish}))
	}
	s.span.SetAttributes(attributes...)
	s.End(err)
}

// StartTool starts the span of a tool call: one from a chat run, where id is the model's id for the call, or
// from the HTTP API, where id is "". A call from an MCP client has the span of its MCP request.
func StartTool(ctx context.Context, name, id, workspace string) (context.Context, Span) {
	if !Recording(ctx) || ctx.Value(servedKey{}) != nil {
		return ctx, Span{}
	}
	attributes := []attribute.KeyValue{attribute.String(operationKey, "execute_tool"), attribute.String("gen_ai.tool.name", clip(name))}
	return child(ctx, trace.SpanKindInternal, "execute_tool "+clip(name), optional(attributes, "gen_ai.tool.call.id", clip(id), workspaceKey, workspace))
}

// StartWait starts the span of a wait within a request, such as for an app that is starting.
func StartWait(ctx context.Context, what string) (context.Context, Span) {
	if !Recording(ctx) {
		return ctx, Span{}
	}
	return child(ctx, trace.SpanKindInternal, "wait for "+what, nil)
}
