package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// kind is a kind of write, each of which has an identifier of its own.
type kind struct {
	name  string
	pause time.Duration // between two writes of a writer
	write func(ctx context.Context, id string) ([]byte, int, http.Header, error)
	// count returns how often each identifier is there.
	count func(ctx context.Context, acknowledged []string) (map[string]int, error)

	mu           sync.Mutex
	acknowledged []string
}

func (k *kind) acknowledge(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.acknowledged = append(k.acknowledged, id)
}

func (k *kind) acknowledgedCount() int {
	k.mu.Lock()
	defer k.mu.Unlock()

	return len(k.acknowledged)
}

// load is writers of every kind.
type load struct {
	kinds []*kind
	stop  func() // ends the writers, and waits for them

	mu      sync.Mutex
	last    time.Time // successful write
	times   []time.Time
	gap     time.Duration
	failed  map[string]int // by description
	strange map[string]int // failures that no client can handle
}

func startLoad(ctx context.Context, i *install) *load {
	l := &load{kinds: i.kinds(), last: time.Now(), failed: map[string]int{}, strange: map[string]int{}}
	ctx, cancel := context.WithCancel(ctx)

	var wg sync.WaitGroup
	for _, k := range l.kinds {
		for w := range *writers {
			wg.Go(func() { l.write(ctx, k, w) })
		}
	}
	l.stop = func() { cancel(); wg.Wait() }

	return l
}

// write writes until ctx ends. A write without an answer is repeated only if it has an idempotency
// key.
func (l *load) write(ctx context.Context, k *kind, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(k.name, " ", "-"), writer, n)
		for ctx.Err() == nil {
			body, status, header, err := k.write(context.WithoutCancel(ctx), id)
			if err == nil && status < 300 {
				k.acknowledge(id)
				l.succeed()

				break
			}

			l.fail(k.name, body, status, header, err)
			_ = sleep(ctx, 100*time.Millisecond)
			if k.name != "forms by key" {
				break
			}
		}
		_ = sleep(ctx, k.pause)
	}
}

func (l *load) succeed() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.gap = max(l.gap, time.Since(l.last))
	l.last = time.Now()
	l.times = append(l.times, l.last)
}

// firstAfter returns the time from at to the next successful write.
func (l *load) firstAfter(at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, t := range l.times {
		if t.After(at) {
			return t.Sub(at)
		}
	}

	return time.Since(at)
}

// fail records a failure. A client can handle one that says when to try again, and one that says
// that the outcome is unknown.
func (l *load) fail(kind string, body []byte, status int, header http.Header, err error) {
	var e struct {
		Code     string
		Metadata struct{ Code string }
	}
	_ = json.Unmarshal(body, &e) // an answer of HAProxy is none
	code := e.Code + e.Metadata.Code

	what := fmt.Sprintf("%d %s", status, code)
	if err != nil {
		what = "connection: " + err.Error()
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.failed[what]++
	waits := header.Get("Retry-After") != "" &&
		(status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests)
	if err != nil || (!waits && code != "outcome_unknown") {
		l.strange[fmt.Sprintf("%s: %s %.200s", kind, what, body)]++
	}
}

func (l *load) resetGap() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.gap, l.last = 0, time.Now()
}

func (l *load) longestGap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	return max(l.gap, time.Since(l.last))
}

// awaitWrite waits for a write that begins now.
func (l *load) awaitWrite(ctx context.Context) error {
	before := l.kinds[0].acknowledgedCount()
	return await(ctx, "a successful write", func() bool { return l.kinds[0].acknowledgedCount() > before+1 })
}

// counts returns how many writes have succeeded and failed so far.
func (l *load) counts() (succeeded, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, n := range l.failed {
		failed += n
	}

	return len(l.times), failed
}

func (l *load) errors() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return maps.Clone(l.failed)
}

func (l *load) unexpected() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	var all []string
	for _, what := range slices.Sorted(maps.Keys(l.strange)) {
		all = append(all, fmt.Sprintf("%d × %s", l.strange[what], what))
	}

	return all
}

// verify counts the acknowledged writes that are not there, and those that are there twice.
func (l *load) verify(ctx context.Context) (lost, doubled map[string]int, err error) {
	lost, doubled = map[string]int{}, map[string]int{}
	for _, k := range l.kinds {
		counted, err := k.count(ctx, k.acknowledged)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", k.name, err)
		}

		for _, id := range k.acknowledged {
			if counted[id] == 0 {
				lost[k.name]++
			}
		}
		for _, n := range counted {
			if n > 1 {
				doubled[k.name]++
			}
		}
	}

	return lost, doubled, nil
}

// kinds returns the kinds of writes: by the rows API, form responses, uploads, and platform writes.
func (i *install) kinds() []*kind {
	rest := map[string]string{"Authorization": "", "X-Project": "", "apikey": i.secretKey}
	ok := func(text []byte, status int, err error) error {
		if err == nil && status >= 300 {
			err = fmt.Errorf("%d %s", status, text)
		}
		return err
	}

	return []*kind{{
		name: "rows", pause: 10 * time.Millisecond,
		write: func(ctx context.Context, id string) ([]byte, int, http.Header, error) {
			return i.send(ctx, "POST", i.fill("/projects/{project}/rest/v1/writes"), []byte(`{"id": "`+id+`"}`), rest)
		},
		count: func(ctx context.Context, _ []string) (map[string]int, error) {
			path := i.fill("/projects/{project}/rest/v1/writes?select=id")
			text, status, _, err := i.send(ctx, "GET", path, nil, rest)
			var rows []struct{ ID string }
			if err := ok(text, status, err); err != nil {
				return nil, err
			}

			counts := map[string]int{}
			err = json.Unmarshal(text, &rows)
			for _, r := range rows {
				counts[r.ID]++
			}
			return counts, err
		},
	}, {
		name: "form responses", pause: 50 * time.Millisecond,
		write: func(ctx context.Context, id string) ([]byte, int, http.Header, error) {
			return i.send(ctx, "POST", i.fill("/forms/{form}/responses"),
				fmt.Appendf(nil, `{"answers": {%q: %q}}`, i.field, id), nil)
		},
		count: func(ctx context.Context, acknowledged []string) (map[string]int, error) {
			text, status, _, err := i.send(ctx, "GET", i.fill("/forms/{form}/responses/export"), nil, nil)
			counts := map[string]int{}
			isBorder := func(r rune) bool { return strings.ContainsRune(",\r\n\"", r) }
			for field := range bytes.FieldsFuncSeq(text, isBorder) {
				counts[string(field)]++
			}
			maps.DeleteFunc(counts, func(id string, _ int) bool { return !strings.HasPrefix(id, "form-responses-") })

			return counts, ok(text, status, err)
		},
	}, {
		name: "uploads", pause: 50 * time.Millisecond,
		write: func(ctx context.Context, id string) ([]byte, int, http.Header, error) {
			return i.send(ctx, "PUT", i.fill("/files/{project}/{container}/"+id), []byte(id),
				map[string]string{"Content-Type": "text/plain"})
		},
		count: func(ctx context.Context, acknowledged []string) (map[string]int, error) {
			counts := map[string]int{}
			for _, id := range acknowledged {
				text, status, _, err := i.send(ctx, "GET", i.fill("/files/{project}/{container}/"+id), nil, nil)
				switch {
				case status == http.StatusNotFound:
				case ok(text, status, err) != nil:
					return nil, ok(text, status, err)
				case string(text) == id:
					counts[id]++
				}
			}
			return counts, nil
		},
	}, {
		name: "forms by key", pause: 300 * time.Millisecond,
		write: func(ctx context.Context, id string) ([]byte, int, http.Header, error) {
			return i.send(ctx, "POST", "/forms", []byte(`{"name": "`+id+`"}`), map[string]string{"Idempotency-Key": id})
		},
		count: i.countForms,
	}}
}

// countForms counts forms by name.
func (i *install) countForms(ctx context.Context, _ []string) (map[string]int, error) {
	counts := map[string]int{}
	for page := 1; ; page++ {
		text, status, _, err := i.send(ctx, "GET", fmt.Sprintf("/forms?limit=100&page=%d", page), nil, nil)
		if err != nil {
			return nil, err
		}

		var list struct{ Content []struct{ Name string } }
		if err := json.Unmarshal(text, &list); status >= 300 || err != nil {
			return nil, fmt.Errorf("%d %s", status, text)
		}
		for _, f := range list.Content {
			counts[f.Name]++
		}
		if len(list.Content) < 100 {
			return counts, nil
		}
	}
}
