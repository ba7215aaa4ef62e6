package chat

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// A queued message is stored, so that every server shows it and it is not lost. It waits on the server that accepted
// it, because only that server has the person's credentials. That server starts its run.

const queuePoll = 500 * time.Millisecond // how often a queued message checks whether a run on another server has ended

// Queue stores a message that waits until its conversation's current run ends. After that, start starts the message's run,
// which is detached. Queue returns nil if no run is active, because the message does not have to wait. The error is
// core.CodeConflict if a message is already waiting.
//
// start may be called several times: it returns core.CodeRunInProgress if another run started first.
func (e *Engine) Queue(ctx context.Context, c core.Caller, r Request, start func(ctx context.Context, r Request) error) (*core.QueuedMessage, error) {
	if r.ConversationID == "" {
		return nil, nil
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := e.allowAttachments(r.Attachments); err != nil {
		return nil, err
	}
	ref := c.Conversation(r.ConversationID)
	if _, err := e.store.Conversation(ctx, ref); err != nil {
		return nil, err
	}
	if running, err := e.isRunning(ctx, ref); err != nil || !running {
		return nil, err
	}
	stored, _, err := userMessage(ref.ID, r)
	if err != nil {
		return nil, err
	}
	stored.Timestamp = time.Now()
	q := core.QueuedMessage{ID: core.RandomID("que_"), Message: stored}
	if err := e.store.QueueMessage(ctx, ref, q, e.queueLease()); err != nil {
		return nil, err
	}
	r.queued = q.ID
	e.publishQueued(ref, true)
	e.detached.runs.Go(func() { e.await(ref, r, start) })
	return &q, nil
}

// queueLease returns how long a queued message keeps waiting after its server was killed. If no other server shares
// the state, the lease is longer than any message may wait.
func (e *Engine) queueLease() time.Duration {
	if e.store.Shared() {
		return e.claims.lease
	}
	return 2 * maxDetached
}

// isRunning reports whether a run is active in a conversation, on any server.
func (e *Engine) isRunning(ctx context.Context, ref core.ConversationRef) (bool, error) {
	if e.claims.isActive(ref.ID) || !e.store.Shared() {
		return e.claims.isActive(ref.ID), nil
	}
	_, err := e.store.RunHolder(ctx, ref)
	if core.CodeOf(err) == core.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

// await starts the run of a queued message once the active run has ended. If the message cannot be run, or its server
// shuts down first, it remains in the conversation without an answer.
func (e *Engine) await(ref core.ConversationRef, r Request, start func(ctx context.Context, r Request) error) {
	ctx, cancel := context.WithTimeout(e.detached.life, maxDetached)
	defer cancel()
	tick := time.NewTicker(queuePoll)
	defer tick.Stop()
	for held := time.Now(); ; {
		select {
		case <-ctx.Done():
			e.leaveQueued(ref, r.queued, context.Cause(ctx))
			return
		case <-e.claims.end(ref.ID):
		case <-tick.C:
		}
		running, err := e.isRunning(ctx, ref)
		if err != nil || running && time.Since(held) < e.queueLease()/3 {
			continue
		}
		switch err := e.store.HoldQueued(ctx, ref, r.queued, e.queueLease()); {
		case core.CodeOf(err) == core.CodeNotFound: // withdrawn, or the conversation was deleted
			return
		case err != nil || running:
			held = time.Now()
			continue
		}
		err = start(ctx, r)
		if err == nil {
			e.publishQueued(ref, false)
			return
		}
		switch core.CodeOf(err) {
		case core.CodeRunInProgress, core.CodeRateLimited, core.CodeUnavailable: // try again later
		case core.CodeNotFound: // withdrawn
			return
		default:
			e.leaveQueued(ref, r.queued, err)
			return
		}
	}
}

// leaveQueued leaves a message in the conversation without an answer.
func (e *Engine) leaveQueued(ref core.ConversationRef, id string, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := e.store.HoldQueued(ctx, ref, id, 0); core.CodeOf(err) == core.CodeNotFound {
		return
	}
	e.log.Warn("queued message not run; it stays in the conversation without an answer", "conversation", ref.ID, "error", why)
	e.publishQueued(ref, false)
}

// Queued returns the message that is waiting in one of c's conversations. The error is core.CodeNotFound if there is
// none.
func (e *Engine) Queued(ctx context.Context, c core.Caller, id string) (core.QueuedMessage, error) {
	return e.store.QueuedMessage(ctx, c.Conversation(id))
}

// Withdraw removes the message that is waiting in one of c's conversations, and returns it. The error is
// core.CodeNotFound if there is none.
func (e *Engine) Withdraw(ctx context.Context, c core.Caller, id string) (core.QueuedMessage, error) {
	ref := c.Conversation(id)
	q, err := e.store.WithdrawQueued(ctx, ref)
	if err == nil {
		e.publishQueued(ref, false)
	}
	return q, err
}

func (e *Engine) publishQueued(ref core.ConversationRef, queued bool) {
	e.publish(ref, core.EventConversationQueued, core.ConversationQueued{ID: ref.ID, Queued: queued})
}
