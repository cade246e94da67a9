package event

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

// maxQueued is the maximum number of changes, and maxQueuedBytes of bytes, that wait in memory for
// a slow follower. Beyond them it reads from the log again.
const (
	maxQueued      = 1000
	maxQueuedBytes = 1 << 20
)

// Follower receives the changes that match its bindings, each once. Its methods, but for Next, are
// safe for concurrent use.
type Follower struct {
	log      *Log
	bindings []Binding
	key      string // identifies the bindings
	share    fair.Key
	signal   chan struct{} // has an element when the fields below have changed

	mu          sync.Mutex
	caller      actor.Actor
	group       string  // identifies the caller: followers of one group see the same rows
	views       []*view // nil: to be bound again
	queue       []Change
	queuedBytes int
	ownBytes    int           // bytes of queue that other followers do not have
	leases      []*fair.Lease // on the memory of queue
	leased      int           // bytes
	taken       []*fair.Lease // on that of the changes that Next has returned
	at          position      // before queue
	seen        position      // after queue, if live
	live        bool          // the log's reader appends to queue
	err         error         // ends the follower
}

// Next waits for the next changes and returns them, at least one. It fails with [ErrResync] if
// changes are lost to the follower.
func (f *Follower) Next(ctx context.Context) ([]Change, error) {
	for {
		f.mu.Lock()
		changes, live, err := f.queue, f.live, f.err
		releaseAll(f.taken)
		f.taken = nil
		if len(changes) > 0 {
			f.taken, f.leases = f.leases, nil
			f.queue, f.queuedBytes, f.ownBytes, f.leased = nil, 0, 0, 0
			if f.at = f.seen; !live {
				f.at, _, _ = parseCursor(changes[len(changes)-1].Cursor)
			}
		}
		f.mu.Unlock()

		switch {
		case len(changes) > 0:
			return changes, nil
		case err != nil:
			return nil, err
		case !live:
			if changes, err = f.catchUp(ctx); err != nil || len(changes) > 0 {
				return changes, err
			}
			continue
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.signal:
		}
	}
}

// catchUp reads one page of the log at the follower's position. At the end of the log the follower
// becomes live.
func (f *Follower) catchUp(ctx context.Context) ([]Change, error) {
	f.mu.Lock()
	at := f.at
	f.mu.Unlock()

	if at.to.text == "" {
		to, read := f.log.readTo()
		if to.isBefore(at.from) { // the cursor is another server's
			return nil, wait(ctx, read)
		}
		at.to, at.xid, at.seq = to, 0, 0
	}

	page, err := f.log.logs.backlogs.Acquire(ctx, f.share, pageCost)
	if errors.Is(err, fair.ErrBusy) {
		return nil, errNoBacklog
	}
	if err != nil {
		return nil, err
	}
	defer page.Release()

	p, err := readBetween(ctx, f.log.project.Trusted(), at)
	if err != nil {
		return nil, err
	}
	if err := f.log.check(ctx, p.head, at.from); err != nil {
		return nil, err
	}

	for _, e := range p.entries {
		at.xid, at.seq = e.XID, uint64(e.Seq)
		e.cursor = at.cursor(f.log.epoch())
	}
	if !p.more {
		at = position{from: at.to}
	}

	changes, err := f.match(ctx, f.log.newMatchers(p.entries))
	if err != nil {
		return nil, err
	}

	read := f.join(at, !p.more)
	if read != nil && len(changes) == 0 {
		page.Release()
		return nil, wait(ctx, read)
	}

	f.hold(changes)
	return changes, nil
}

// wait waits until a channel is closed.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

// join records the follower's position after a page, and makes the follower live if that is the
// reader's. If the reader is about to leave that position, join returns a channel that is closed
// when it has.
func (f *Follower) join(at position, end bool) (read <-chan struct{}) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()

	f.at = at
	switch {
	case !end || f.log.at.text != at.from.text || f.err != nil:
		return nil
	case f.log.busy:
		return f.log.read
	}

	f.live, f.seen = true, at
	return nil
}

// match returns the changes that the follower gets. Followers of one group with equal bindings
// share them.
func (f *Follower) match(ctx context.Context, shared *matchers) ([]Change, error) {
	caller, group, views, err := f.currentViews(ctx)
	if err != nil {
		return nil, err
	}

	key := selectionKey{group, f.key}
	if changes, ok := shared.selected[key]; ok {
		return changes, nil
	}

	matched := map[*entry]Change{}
	for _, v := range views {
		if err := shared.find(caller, group, v.relation.OID).add(ctx, v, matched); err != nil {
			return nil, err
		}
	}

	var changes []Change
	for _, e := range shared.entries {
		if c, ok := matched[e]; ok {
			c.encoding = &encoding{}
			changes = append(changes, c)
		}
	}
	shared.keep(key, changes)

	return changes, nil
}

// append queues changes from the log's reader, which are those up to a position. The follower falls
// back to reading the log itself if it is too slow.
func (f *Follower) append(changes []Change, at position) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if !f.live {
		return
	}

	all, own := f.queuedBytes, f.ownBytes
	for i := range changes {
		all += len(changes[i].Record) + len(changes[i].Old)
		own += changeCost + changes[i].copied
	}
	isFull := len(f.queue) > 0 && (len(f.queue)+len(changes) > maxQueued || all > maxQueuedBytes)
	if isFull || !f.grow(own) {
		f.live = false
	} else {
		f.queue = append(f.queue, changes...)
		f.seen, f.queuedBytes, f.ownBytes = at, all, own
		if len(f.queue) == 0 {
			f.at = at
		}
	}

	f.wake()
}

// stayLive reports whether the reader checks changes for the follower. A follower whose filters
// need PostgreSQL falls back to reading the log itself.
func (f *Follower) stayLive() bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.live && slices.ContainsFunc(f.views, (*view).isSlow) {
		f.live = false
		f.wake()
	}

	return f.live
}

// bindAgain makes the follower bind anew before it reads on. It returns the former views.
func (f *Follower) bindAgain() []*view {
	f.mu.Lock()
	defer f.mu.Unlock()

	former := f.views
	f.live, f.views = false, nil
	f.wake()

	return former
}

// detach makes the follower read the log itself.
func (f *Follower) detach() {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.live = false
	f.wake()
}

// end ends the follower with a failure.
func (f *Follower) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.live = false
	if f.err == nil {
		f.err = err
	}
	f.wake()
}

func (f *Follower) wake() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

// SetCaller replaces the caller. Later changes are checked for the new one.
func (f *Follower) SetCaller(caller actor.Actor) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if group := groupOf(caller); group != f.group {
		f.caller, f.group, f.views, f.live = caller, group, nil, false
		f.wake()
	}
}

// currentViews returns the follower's caller and views. It binds the follower anew if the caller or
// the catalog has changed.
func (f *Follower) currentViews(ctx context.Context) (caller actor.Actor, group string, views []*view, err error) {
	for {
		f.mu.Lock()
		caller, group, views = f.caller, f.group, f.views
		f.mu.Unlock()

		if views != nil {
			return caller, group, views, nil
		}

		if views, err = f.log.resolve(ctx, caller, f.bindings); err != nil {
			return caller, group, nil, err
		}
		if err := f.log.capture(ctx, views); err != nil {
			return caller, group, nil, err
		}

		f.mu.Lock()
		if f.group == group {
			f.views = views
		}
		f.mu.Unlock()
	}
}

// Cursor returns the position after the changes that Next has returned.
func (f *Follower) Cursor() string {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.at.cursor(f.log.epoch())
}

// Close ends the follower.
func (f *Follower) Close() {
	f.log.remove(f)
	f.end(fault.New(fault.Unavailable, "the follower is closed"))

	f.mu.Lock()
	defer f.mu.Unlock()

	releaseAll(f.leases)
	releaseAll(f.taken)
	f.queue, f.leases, f.taken = nil, nil, nil
}

// bindingsKey identifies a list of bindings.
func bindingsKey(bindings []Binding) string {
	var key strings.Builder
	for _, b := range bindings {
		for _, s := range []string{b.Event, b.Schema, b.Table, b.Filter, b.Select} {
			key.WriteString(strconv.Quote(s))
		}
	}

	return key.String()
}

// groupOf identifies a caller by its role and claims.
func groupOf(a actor.Actor) string {
	sum := sha256.Sum256(append([]byte(a.Role+"\x00"+a.Subject+"\x00"), a.Claims...))
	return string(sum[:])
}
