package session

import (
	"context"
	"strconv"

	"github.com/socle-dev/socle/internal/fair"
)

// Result is the row that a statement from package plan returns. Its slices are valid until Release.
type Result struct {
	Total    int64 // -1 if not counted
	Estimate int64 // -1 if not requested
	Rows     int64
	Inserted int64  // -1 without upsert
	Location []byte // an inserted row's key values; empty if not requested
	Headers  []byte // response.headers; empty if not set
	Status   []byte // response.status; empty if not set
	Size     int    // body size in bytes
	Body     []byte // nil if the body is streamed

	pipeline *pipeline
	buffer   []byte
	lease    *fair.Lease // bytes of the budget; nil without
}

// Streamed reports whether Stream must read the body. Until then, and unless the result is
// released, the connection stays in use.
func (r *Result) Streamed() bool { return r.pipeline != nil && r.pipeline.isSuspended }

// Stream writes a streamed body to w. A slow client occupies the connection only if the budget has
// no room for the rest of the body. Stream returns a [ClientError] if w fails or the request is
// canceled, whichever shows first that the client has disconnected.
func (r *Result) Stream(w Writer) error {
	p := r.pipeline
	x := p.executor
	s := newSpool(x.Budget, p.owner(), w)

	go s.drain()

	isContended := func() bool { return x.contended(p.Pool) }
	err := s.fill(&p.session.reader, p.Deadline, x.SlowClientTimeout, isContended)
	if err != nil {
		if p.watchdog.canceled() {
			err = ClientError{err}
		}

		p.abandon()
		s.abort(err)
	} else {
		p.resume()
	}

	return s.wait()
}

// Release frees the result's memory, and its connection if the body was not streamed.
func (r *Result) Release() { r.pipeline.release() }

// reset drops the content and returns its bytes to the budget.
func (r *Result) reset(p *pipeline) {
	if r.lease != nil {
		r.pipeline.executor.Budget.release(r.lease)
	}

	*r = Result{Total: -1, Estimate: -1, Inserted: -1, pipeline: p, buffer: pooled(r.buffer)}
}

// reserve takes the budget for a body that must be buffered. It never fails for a change whose
// COMMIT was sent. Others wait until the execution's deadline, and in a block, which holds locks,
// at most for SlowClientTimeout.
func (p *pipeline) reserve(size int) error {
	budget, owner := p.executor.Budget, p.owner()
	if p.commitPipelined() {
		p.result.lease = budget.forceTake(owner, size)
		return nil
	}

	var ctx context.Context = p.watchdog
	if p.inBlock {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.executor.SlowClientTimeout)
		defer cancel()
	}

	lease, err := budget.take(ctx, owner, size)
	if err != nil {
		return ErrNoBudget
	}

	p.result.lease = lease
	return nil
}

func parseCount(b []byte, absent int64) (int64, error) {
	if len(b) == 0 {
		return absent, nil
	}
	return strconv.ParseInt(string(b), 10, 64)
}
