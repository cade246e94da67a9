package function

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/projectdb"
)

// worker is a process with a function, or one that is about to have it.
type worker struct {
	service *Service
	key     key
	project *projectdb.Project
	state   state
	started time.Time

	ready   chan struct{}    // closed when process or err is set
	process *runtime.Process // nil if err is not
	err     error
	stopped <-chan struct{} // closed at the end of process

	serviceKey string // key of the service role, from the environment
	log        throttle
	answered   sync.Once // the first answer, or its failure

	// Guarded by the service's mu.
	inFlight  int
	served    int
	lastUsed  time.Time
	drainedBy time.Time // zero: it takes requests
	ending    bool
	reason    string // why it was killed, "" if it was not
	budget    budget
}

// blank is a process without a function.
type blank struct {
	process *runtime.Process
	owner   atomic.Pointer[worker] // whose lines and connections the process's are
}

// LimitError reports that a process was killed at a limit.
type LimitError struct{ Limit string }

func (e *LimitError) Error() string { return "the function exceeded its limit: " + e.Limit }

// Call is a request's use of a process.
type Call struct {
	worker *worker
	began  time.Time
}

// Limits returns the limits of the call.
func (c *Call) Limits() Limits { return c.worker.state.Limits }

// Acquire returns a process of a function, which it starts if there is none. The caller must call
// [Call.Release]. It fails with NotFound without the function, and with ErrBusy, a
// *runtime.BootError or an *UnavailableError.
func (s *Service) Acquire(ctx context.Context, p *projectdb.Project, name string) (*Call, error) {
	st, err := s.find(ctx, p, name)
	if err != nil {
		return nil, err
	}

	began := time.Now()
	w, err := s.assign(p, key{p.UUID, name}, st)
	if err != nil {
		s.tallies.call(p, name, true, 0)
		return nil, err
	}

	c := &Call{w, began}
	select {
	case <-w.ready:
		if w.err != nil {
			c.Release()
			s.tallies.call(p, name, true, time.Since(began))
			return nil, w.err
		}

		return c, nil
	case <-ctx.Done():
		c.Release()
		return nil, ctx.Err()
	}
}

// assign returns the worker of a function, with the request counted.
func (s *Service) assign(p *projectdb.Project, k key, st state) (*worker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		return nil, ErrBusy
	}

	w := s.current[k]
	if w != nil && w.state != st {
		w.drainLocked("replaced")
		w = nil
	}
	if w == nil && !s.mayStartLocked(k.project, st.Processes) {
		return nil, ErrBusy
	}
	if w == nil {
		w = &worker{service: s, key: k, project: p, state: st, started: time.Now(), ready: make(chan struct{})}
		s.current[k], s.all[w] = w, struct{}{}
		s.open.Go(w.run)
	}
	if w.inFlight >= w.state.Concurrency {
		return nil, ErrBusy
	}

	w.inFlight++
	w.served++
	w.lastUsed = time.Now()
	w.budget.grant(w.cpuPerRequest())

	return w, nil
}

// mayStartLocked reports whether a project may have another process. If it has all that it may
// have, the one that is idle longest ends.
func (s *Service) mayStartLocked(project uuid.UUID, most int) bool {
	count := 0
	for k := range s.current { // those that drain end soon
		if k.project == project {
			count++
		}
	}
	if count < most {
		return true
	}

	return s.endIdleLocked(func(w *worker) bool { return w.key.project == project })
}

func (w *worker) cpuPerRequest() time.Duration {
	return time.Duration(w.state.CPUMilliseconds) * time.Millisecond
}

// Release ends the use.
func (c *Call) Release() {
	w := c.worker
	w.service.mu.Lock()
	defer w.service.mu.Unlock()

	w.inFlight--
	w.lastUsed = time.Now()
	if w.inFlight == 0 && !w.drainedBy.IsZero() {
		w.endLocked("replaced")
	}
}

// RoundTrip sends a request to the function. It fails with a *LimitError if the process was killed
// at a limit, with ErrNoAnswer if it ended or broke HTTP, and with the error of the request's body.
func (c *Call) RoundTrip(r *http.Request) (*http.Response, error) {
	w := c.worker
	res, err := w.process.RoundTrip(r)
	w.answered.Do(w.service.startRefill)
	w.service.tallies.call(w.project, w.key.name, err != nil || res.StatusCode >= http.StatusInternalServerError,
		time.Since(c.began))
	if err != nil && r.Context().Err() == nil {
		return nil, c.failure(err)
	}

	return res, err
}

// failure returns why the process does not answer.
func (c *Call) failure(err error) error {
	w := c.worker
	w.service.mu.Lock()
	defer w.service.mu.Unlock()

	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	if w.reason != "" {
		return &LimitError{w.reason}
	}

	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

// Kill kills the process, because a request exceeds a limit that the caller watches.
func (c *Call) Kill(limit string) {
	c.worker.service.mu.Lock()
	defer c.worker.service.mu.Unlock()

	c.worker.killLocked(limit)
}

// run starts the process and returns when it has ended.
func (w *worker) run() {
	s := w.service
	lease, err := s.acquirePlaces(s.stopping, w.project.Key(s.stopping), w.state.MemoryMB)
	if err == nil {
		defer lease.Release()
		err = w.boot()
	}

	w.err = err
	close(w.ready)
	if err != nil {
		w.event("Does not start: " + err.Error())
		return // check removes it after bootErrorTTL
	}

	select {
	case <-w.process.Exited():
	case <-lease.Revoked():
		s.mu.Lock()
		w.killLocked("processes")
		s.mu.Unlock()
	}
	w.process.Close()

	s.mu.Lock()
	reason := w.reason
	s.removeLocked(w)
	s.mu.Unlock()

	if reason == "" {
		reason = w.process.State().String()
	}
	w.event("Ended: " + reason)
}

// boot loads the function into a blank process.
func (w *worker) boot() error {
	ctx, cancel := context.WithTimeout(w.service.stopping, bootTimeout)
	defer cancel()

	code, err := readCode(ctx, w.project, w.key.name, w.state.Version)
	if err != nil {
		return err
	}

	env, err := w.service.environment(ctx, w.project)
	if err != nil {
		return err
	}

	b, err := w.service.takeBlank(ctx, w.state.MemoryMB)
	if err != nil {
		return err
	}

	codeCache, ok := w.service.codeCaches.get(w.project, w.state.Version)
	if !ok {
		defer w.service.startCompile(ctx, w.project, w.state.Version, code)
	}

	w.stopped, w.serviceKey = b.process.Exited(), env[serviceKeyName]
	b.owner.Store(w)
	if err := b.process.Load(ctx, w.service.module(code, codeCache, env)); err != nil {
		b.process.Close()
		return err
	}

	usage, _ := b.process.Usage() // the function's own time begins here

	w.service.mu.Lock()
	defer w.service.mu.Unlock()

	w.process = b.process
	w.budget.begin(usage.CPU, w.cpuPerRequest())
	if w.reason != "" { // killed while it started
		b.process.Kill()
	}
	w.service.tallies.add(w.project, w.key.name, tally{coldStarts: 1})

	return nil
}

// acquirePlaces returns the places of a process, one for each [defaultLimits.MemoryMB] that it may
// allocate, so that the number of places bounds the memory of all. If none is free, the processes
// that are idle longest end.
func (s *Service) acquirePlaces(ctx context.Context, owner fair.Key, memoryMB int) (*fair.Lease, error) {
	n := s.placesOf(memoryMB)
	if lease := s.places.TryAcquire(owner, n); lease != nil {
		return lease, nil
	}

	for range n {
		s.endIdle()
	}

	lease, err := s.places.Acquire(ctx, owner, n)
	if errors.Is(err, fair.ErrBusy) {
		return nil, ErrBusy
	}

	return lease, err
}

// placesOf returns the number of places of a process, at most those that a project may have.
func (s *Service) placesOf(memoryMB int) int64 {
	processes := int64(cmp.Or(s.Processes, maxProcesses))
	places := (int64(memoryMB) + int64(defaultLimits.MemoryMB) - 1) / int64(defaultLimits.MemoryMB)

	return min(places, processes/4)
}

// endIdle ends the process that is idle longest.
func (s *Service) endIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.endIdleLocked(func(*worker) bool { return true })
}

// endIdleLocked ends the process that is idle longest of those that match. It reports false if
// there is none.
func (s *Service) endIdleLocked(matches func(*worker) bool) bool {
	var oldest *worker
	for _, w := range s.current {
		if w.inFlight == 0 && w.process != nil && matches(w) && (oldest == nil || w.lastUsed.Before(oldest.lastUsed)) {
			oldest = w
		}
	}
	if oldest == nil {
		return false
	}

	oldest.endLocked("idle")
	return true
}

// takeBlank returns a process that waits for its function, or starts one. The waiting ones have the
// default memory.
func (s *Service) takeBlank(ctx context.Context, memoryMB int) (*blank, error) {
	if memoryMB != defaultLimits.MemoryMB {
		return s.startBlank(ctx, memoryMB)
	}

	s.mu.Lock()
	for len(s.blank) > 0 {
		b := s.blank[0]
		s.blank = s.blank[1:]
		if !b.process.HasExited() {
			s.mu.Unlock()
			return b, nil
		}
	}
	s.mu.Unlock()

	return s.startBlank(ctx, memoryMB)
}

func (s *Service) startBlank(ctx context.Context, memoryMB int) (*blank, error) {
	b := &blank{}
	process, err := runtime.Start(ctx, runtime.Config{Program: s.Program, MemoryMB: memoryMB,
		Outward: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if owner := b.owner.Load(); owner != nil {
				s.serveOutward(w, r, owner)
			}
		}),
		Log: func(line runtime.Line) {
			if owner := b.owner.Load(); owner != nil {
				owner.record(line)
			}
		}})
	if err != nil && ctx.Err() == nil {
		return nil, &UnavailableError{err}
	}
	if err != nil {
		return nil, err
	}

	b.process = process
	return b, nil
}

// startRefill starts the blank processes that are missing, in the background. It is called when a
// function has answered, so that it does not take processor time from a first call.
func (s *Service) startRefill() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.closed && len(s.blank) < maxBlank {
		s.open.Go(s.refill)
	}
}

// refill starts blank processes until there are maxBlank.
func (s *Service) refill() {
	for {
		s.mu.Lock()
		enough := s.closed || len(s.blank) >= maxBlank
		s.mu.Unlock()

		if enough {
			return
		}

		b, err := s.startBlank(s.stopping, defaultLimits.MemoryMB)
		if err != nil {
			return // the next request that needs one reports it
		}

		s.mu.Lock()
		enough = s.closed || len(s.blank) >= maxBlank
		if !enough {
			s.blank = append(s.blank, b)
		}
		s.mu.Unlock()

		if enough {
			b.process.Close()
		}
	}
}

// drainLocked lets a worker finish its requests, and take no more.
func (w *worker) drainLocked(reason string) {
	if w.service.current[w.key] == w {
		delete(w.service.current, w.key)
	}
	if w.drainedBy = time.Now().Add(drainTimeout); w.inFlight == 0 {
		w.endLocked(reason)
	}
}

// endLocked ends a worker without requests, after its background work.
func (w *worker) endLocked(reason string) {
	if w.service.current[w.key] == w {
		delete(w.service.current, w.key)
	}
	if w.process == nil || w.ending {
		return
	}

	w.ending, w.drainedBy = true, time.Now().Add(drainTimeout)
	w.service.open.Go(func() {
		ctx, cancel := context.WithTimeout(w.service.stopping, drainTimeout)
		defer cancel()

		w.process.End(ctx, reason)
	})
}

// killLocked ends a worker at once.
func (w *worker) killLocked(reason string) {
	if w.service.current[w.key] == w {
		delete(w.service.current, w.key)
	}
	if w.reason == "" {
		w.reason = reason
	}
	if w.process != nil {
		w.process.Kill()
	}
}

func (s *Service) removeLocked(w *worker) {
	delete(s.all, w)
	if s.current[w.key] == w {
		delete(s.current, w.key)
	}
}

// record logs a line of the function.
func (w *worker) record(line runtime.Line) {
	ok, dropped := w.log.admit(time.Now(), len(line.Text))
	if dropped > 0 {
		w.event(strconv.Itoa(dropped) + " lines were not logged: the limit is " + strconv.Itoa(windowLines) +
			" lines in 10 seconds")
	}
	if ok {
		w.service.logs.add(w.project, w.key.name, line)
	}
}

// event logs what happened to the process.
func (w *worker) event(text string) {
	w.service.logs.add(w.project, w.key.name, runtime.Line{Stream: streamEvent, Text: text})
}
