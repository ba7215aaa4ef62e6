package metrics

import (
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func (m *Metrics) addChat() {
	m.runs = m.histogram("ropewalk_chat_run_duration_seconds", "Duration of chat runs, by how they ended.",
		[]float64{0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}, "outcome")
	m.modelCalls = m.histogram("gen_ai_client_operation_duration_seconds", "Duration of requests to models.",
		[]float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
		"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type")
	m.tokens = m.histogram("gen_ai_client_token_usage", "Tokens of requests to models.",
		[]float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
		"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type")
	m.cost = m.counter("ropewalk_chat_cost_usd_total", "Cost of requests to models in US dollars, at the configured prices.", "gen_ai_provider_name", "gen_ai_request_model")
}

// ChatRun records a run by how it ended: a stop reason, or failed.
func (m *Metrics) ChatRun(outcome string, took time.Duration) {
	m.runs.WithLabelValues(outcome).Observe(took.Seconds())
}

// ModelCall records a request to a model and its usage.
func (m *Metrics) ModelCall(used core.Usage, failed bool) {
	provider, name, _ := strings.Cut(m.models.or(used.Model), ":")
	errorType := ""
	if failed {
		errorType = other
	}
	m.modelCalls.WithLabelValues("chat", provider, name, errorType).Observe(used.LLM.Seconds())
	for _, t := range []struct {
		kind  string
		count int64
	}{
		{"input", used.InputTokens}, {"output", used.OutputTokens},
	} {
		if t.count > 0 {
			m.tokens.WithLabelValues("chat", provider, name, t.kind).Observe(float64(t.count))
		}
	}
	if used.CostUSD != nil {
		m.cost.WithLabelValues(provider, name).Add(*used.CostUSD)
	}
}
