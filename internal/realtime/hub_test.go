package realtime

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
)

// inbox is a subscriber that keeps its messages.
type inbox struct {
	mu  sync.Mutex
	got []string
}

func (i *inbox) Deliver(m *Message) {
	text := string(m.Payload)
	if m.Kind == Broadcast {
		text = m.Event + " " + text
	}

	i.mu.Lock()
	defer i.mu.Unlock()

	i.got = append(i.got, text)
}

// take returns the messages since the last call.
func (i *inbox) take() []string {
	i.mu.Lock()
	defer i.mu.Unlock()

	got := i.got
	i.got = nil

	return got
}

// join joins a room with an inbox.
func join(t *testing.T, h *Hub, a Address) (*Member, *inbox) {
	t.Helper()

	i := &inbox{}
	m, err := h.Join(a, i)
	if err != nil {
		t.Fatal(err)
	}

	return m, i
}

func TestRooms(t *testing.T) {
	t.Parallel()

	h := NewHub()
	project, other := uuid.New(), uuid.New()
	here := Address{Project: project, Topic: "room"}
	ann, annInbox := join(t, h, here)
	ben, benInbox := join(t, h, here)
	var outside []*inbox
	for _, a := range []Address{
		{Project: project, Topic: "room2"}, {Project: project, Topic: "room", Private: true},
		{Project: other, Topic: "room"},
	} {
		_, i := join(t, h, a)
		outside = append(outside, i)
	}

	for _, test := range []struct {
		name     string
		send     func(*Message) error
		ann, ben bool
	}{
		{"to others", func(m *Message) error { return ann.Send(m, false) }, false, true},
		{"to all", func(m *Message) error { return ann.Send(m, true) }, true, true},
		{"from outside", func(m *Message) error { return h.Send(here, m) }, true, true},
		{"to nobody", func(m *Message) error { return h.Send(Address{Project: project, Topic: "x"}, m) }, false, false},
		{"to no project", func(m *Message) error { return h.Send(Address{Project: uuid.New()}, m) }, false, false},
		{"after leaving", func(m *Message) error { ben.Leave(); ben.Leave(); return ann.Send(m, true) }, true, false},
		{"by a former member", func(m *Message) error { return ben.Send(m, true) }, true, false},
	} {
		if err := test.send(&Message{Event: "e", Payload: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		if a, b := len(annInbox.take()) == 1, len(benInbox.take()) == 1; a != test.ann || b != test.ben {
			t.Errorf("%s: got %v, %v, want %v, %v", test.name, a, b, test.ann, test.ben)
		}
	}

	for i, o := range outside {
		if got := o.take(); got != nil {
			t.Errorf("room %d outside got %v", i, got)
		}
	}

	if got, want := h.Stats(project), (Stats{Rooms: 3, Members: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	ann.Leave()
	if got, want := h.Stats(project), (Stats{Rooms: 2, Members: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDeliveriesAreBounded checks that a project's large rooms can't exceed its deliveries, and
// that another project is not concerned.
func TestDeliveriesAreBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		large, small := Address{Project: uuid.New(), Topic: "x"}, Address{Project: uuid.New(), Topic: "x"}
		for range 100 {
			join(t, h, large)
		}
		join(t, h, small)

		sent := 0
		for h.Send(large, &Message{}) == nil {
			sent++
		}
		if want := deliveryBurst / 100; sent != want {
			t.Errorf("got %d messages, want %d", sent, want)
		}
		if err := h.Send(large, &Message{}); err != ErrTooManyDeliveries {
			t.Errorf("got %v, want %v", err, ErrTooManyDeliveries)
		}
		if err := h.Send(small, &Message{}); err != nil {
			t.Errorf("the other project: got %v", err)
		}

		time.Sleep(time.Second)
		if err := h.Send(large, &Message{}); err != nil {
			t.Errorf("a second later: got %v", err)
		}
	})
}

// TestAccountsAreBounded: the projects of an account share deliveries and members, those of another
// one have theirs.
func TestAccountsAreBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		sent := map[string]int{}
		for i := range 11 {
			account := "hostile"
			if i == 10 {
				account = "friendly"
			}
			a := Address{Project: uuid.New(), Topic: "x", Share: fair.Key{Account: account, Part: fmt.Sprint(i)}}
			for range 100 {
				join(t, h, a)
			}
			for h.Send(a, &Message{}) == nil {
				sent[account]++
			}
		}
		if want := deliveryBurst / 100; sent["hostile"] != AccountShare*want || sent["friendly"] != want {
			t.Errorf("got %v messages, want %d and %d", sent, AccountShare*want, want)
		}

		var members []*Member
		a := Address{Project: uuid.New(), Topic: "x", Share: fair.Key{Account: "hostile"}}
		for m, err := h.Join(a, &inbox{}); err == nil; m, err = h.Join(a, &inbox{}) {
			members = append(members, m)
			a.Project = uuid.New()
		}
		if got, want := len(members), MaxMembers-1000; got != want {
			t.Errorf("got %d members beside 1000, want %d", got, want)
		}
		join(t, h, Address{Project: uuid.New(), Topic: "x", Share: fair.Key{Account: "newcomer"}})
		for _, m := range members {
			m.Leave()
		}
		if len(h.projects) != 12 || len(h.accounts) != 3 {
			t.Errorf("got %d projects and %d accounts, want 12 and 3", len(h.projects), len(h.accounts))
		}
	})
}

// TestLimitsOfProject: limits hold from the next member or message on.
func TestLimitsOfProject(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		a := Address{Project: uuid.New(), Topic: "x", Limits: Limits{Members: 2, DeliveriesPerSecond: 3}}
		join(t, h, a)
		_, inbox := join(t, h, a)
		if _, err := h.Join(a, inbox); err != ErrTooManyMembers {
			t.Errorf("got %v, want %v", err, ErrTooManyMembers)
		}

		send := func(a Address) (n int) {
			for h.Send(a, &Message{}) == nil {
				n++
			}
			return n
		}
		if got := send(a); got != 3 { // messages to two members, of 6 deliveries
			t.Errorf("got %d messages, want 3", got)
		}
		a.Limits = Limits{} // unchanged
		time.Sleep(2 * time.Second)
		if got := send(a); got != 3 {
			t.Errorf("without news: got %d messages, want 3", got)
		}
		a.Limits.DeliveriesPerSecond = 4 * DeliveriesPerSecond // beyond those of an account by default
		_ = h.Send(a, &Message{})
		time.Sleep(2 * time.Second)
		if got, want := send(a), 4*deliveryBurst/2; got != want {
			t.Errorf("raised: got %d messages, want %d", got, want)
		}
	})
}

func TestMembersAreBounded(t *testing.T) {
	t.Parallel()

	h := NewHub()
	a := Address{Project: uuid.New(), Topic: "x"}
	var last *Member
	for range MaxMembers {
		last, _ = join(t, h, a)
	}
	if _, err := h.Join(a, &inbox{}); err != ErrTooManyMembers {
		t.Errorf("got %v, want %v", err, ErrTooManyMembers)
	}

	last.Leave()
	join(t, h, a)
}

func TestBucket(t *testing.T) {
	t.Parallel()

	start := time.Now()
	b := NewBucket(10, 2)
	for i, test := range []struct {
		after time.Duration
		want  time.Duration
	}{{0, 0}, {0, 0}, {0, 100 * time.Millisecond}, {0, 200 * time.Millisecond}, {300 * time.Millisecond, 0},
		{time.Hour, 0}, {time.Hour, 0}, {time.Hour, 100 * time.Millisecond}} {
		if got := b.Reserve(start.Add(test.after)); (got - test.want).Abs() > time.Microsecond {
			t.Errorf("%d: got %v, want %v", i, got, test.want)
		}
	}
}

// TestFrames checks that a message is encoded once per format.
func TestFrames(t *testing.T) {
	t.Parallel()

	m, encodings := &Message{}, 0
	for range 3 {
		for format := range Formats {
			got := m.Frame(format, func() []byte { encodings++; return fmt.Append(nil, format) })
			if want := fmt.Sprint(format); string(got) != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	if encodings != Formats {
		t.Errorf("got %d encodings, want %d", encodings, Formats)
	}
}

// wantMessages compares messages, in which UUIDs are replaced by their order of appearance.
func wantMessages(t *testing.T, step string, refs *[]string, got []string, want ...string) {
	t.Helper()

	for i := range got {
		for j := 0; j+36 <= len(got[i]); j++ {
			id := got[i][j : j+36]
			if _, err := uuid.Parse(id); err != nil {
				continue
			}
			if !slices.Contains(*refs, id) {
				*refs = append(*refs, id)
			}
			got[i] = strings.Replace(got[i], id, fmt.Sprint(slices.Index(*refs, id)+1), 1)
		}
	}

	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		var refs []string
		room := Address{Project: uuid.New(), Topic: "x"}
		ann, annInbox := join(t, h, room)
		ben, benInbox := join(t, h, room)
		cleo, cleoInbox := join(t, h, room)
		track := func(m *Member, key, payload string) {
			t.Helper()
			if err := m.Track(key, []byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
		settle := func() { time.Sleep(presenceInterval); synctest.Wait() }

		ann.WatchPresence()
		ann.WatchPresence()
		wantMessages(t, "empty", &refs, annInbox.take(), `{}`)

		track(ann, "a", `{"at":1}`)
		track(ben, "a", `{}`)
		wantMessages(t, "collected", &refs, annInbox.take())
		ben.WatchPresence()
		wantMessages(t, "pending joins are in the diff alone", &refs, benInbox.take(), `{}`)
		settle()
		const joined = `{"joins":{"a":{"metas":[{"at":1,"phx_ref":"1"},{"phx_ref":"2"}]}},"leaves":{}}`
		wantMessages(t, "joined", &refs, annInbox.take(), joined)
		wantMessages(t, "joined", &refs, benInbox.take(), joined)

		track(ann, "a", `{"at":2}`)
		cleo.WatchPresence()
		cleoState := cleoInbox.take()
		if len(cleoState) != 1 || strings.Count(cleoState[0], "phx_ref") != 2 ||
			!strings.Contains(cleoState[0], `"at":1`) {
			t.Errorf("a pending change: got %v, want the state before it", cleoState)
		}
		settle()
		wantMessages(t, "changed", &refs, annInbox.take(), `{"joins":{},"leaves":{"a":{"metas":[{"at":1,"phx_ref":"1"}]}}}`,
			`{"joins":{"a":{"metas":[{"at":2,"phx_ref":"3","phx_ref_prev":"1"}]}},"leaves":{}}`)

		track(cleo, "c", `{}`)
		cleo.Untrack()
		cleo.Untrack()
		settle()
		wantMessages(t, "came and left between diffs", &refs, annInbox.take())

		track(ben, "b", `{"phx_ref":"forged","phx_ref_prev":"forged"}`)
		settle()
		wantMessages(t, "another key", &refs, annInbox.take(), `{"joins":{"b":{"metas":[{"phx_ref":"4",`+
			`"phx_ref_prev":"2"}]}},"leaves":{"a":{"metas":[{"phx_ref":"2"}]}}}`)

		ben.Leave()
		settle()
		wantMessages(t, "left", &refs, annInbox.take(), `{"joins":{},"leaves":{"b":{"metas":[{"phx_ref":"4",`+
			`"phx_ref_prev":"2"}]}}}`)

		ann.Leave()
		cleo.Leave()
		settle()
		track(ann, "a", `{}`)
		settle()
		wantMessages(t, "a former member tracks nothing", &refs, annInbox.take())
	})
}

func TestPresencesAreBounded(t *testing.T) {
	t.Parallel()

	h := NewHub()
	room := Address{Project: uuid.New(), Topic: "x"}
	m, _ := join(t, h, room)
	large := `{"x":"` + strings.Repeat("x", MaxPresencePayload-100) + `"}`
	for _, test := range []struct {
		key, payload string
		want         error
	}{
		{strings.Repeat("k", MaxPresenceKey+1), `{}`, ErrPresenceTooLarge},
		{strings.Repeat("k", 1<<20), `{}`, ErrPresenceTooLarge},
		{"k", `{"x":"` + strings.Repeat("x", MaxPresencePayload) + `"}`, ErrPresenceTooLarge},
		{"k", `[]`, ErrPresenceInvalid}, {"k", `null`, ErrPresenceInvalid}, {"k", `{`, ErrPresenceInvalid},
		{"k", ``, ErrPresenceInvalid}, {strings.Repeat("k", MaxPresenceKey), large, nil},
	} {
		if err := m.Track(test.key, []byte(test.payload)); err != test.want {
			t.Errorf("%.20s %.20s: got %v, want %v", test.key, test.payload, err, test.want)
		}
	}

	tracked := 0
	for {
		m, _ := join(t, h, room)
		if err := m.Track("k", []byte(large)); err == ErrTooManyPresences {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		tracked++
	}
	if least := MaxPresenceBytes/MaxPresencePayload - 1; tracked < least || tracked > least+10 {
		t.Errorf("got %d large presences, want about %d", tracked, least)
	}
	if err := m.Track("k", []byte(large)); err != nil {
		t.Errorf("a change in a full room: got %v", err)
	}
}
