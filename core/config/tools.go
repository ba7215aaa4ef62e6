package config

import (
	"time"

	"github.com/ropewalk/ropewalk/core/trust"
)

// Tools says which tools of apps may be used without a person who looks at them.
type Tools struct {
	Pin            trust.PinMode
	Approve        []string // names of tools, in which * matches any text, or destructiveHint
	ApprovalWait   time.Duration
	ApprovalExpiry time.Duration
}

type toolsSection struct {
	Pin                   string   `json:"pin"`
	Approve               []string `json:"approve"`
	ApprovalWaitSeconds   int      `json:"approvalWaitSeconds"`
	ApprovalExpirySeconds int      `json:"approvalExpirySeconds"`
}

func (s toolsSection) tools() Tools {
	return Tools{
		Pin: trust.PinMode(s.Pin), Approve: s.Approve,
		ApprovalWait: seconds(s.ApprovalWaitSeconds), ApprovalExpiry: seconds(s.ApprovalExpirySeconds),
	}
}
