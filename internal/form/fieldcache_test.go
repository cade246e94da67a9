package form

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestFieldCache fills a cache beyond its bounds.
func TestFieldCache(t *testing.T) {
	t.Parallel()

	now, large := time.Now(), strings.Repeat("x", maxCachedBytes/4)
	set := func(label string) fieldSet {
		return fieldSet{frozenAt: &now, fields: []Field{{Definition: Definition{Label: label}}}}
	}

	c := NewFieldCache()
	for range maxCachedForms + 10 {
		c.put(uuid.New(), set("short"))
	}
	if got := c.forms.Len(); got != maxCachedForms {
		t.Errorf("got %d forms, want %d", got, maxCachedForms)
	}

	for range 10 {
		c.put(uuid.New(), set(large))
	}
	if got := c.forms.Weight(); got > maxCachedBytes || got < maxCachedBytes/2 {
		t.Errorf("got %d bytes, want up to %d", got, maxCachedBytes)
	}

	unknown := uuid.New()
	c.put(unknown, fieldSet{})
	if _, ok := c.forms.Get(unknown); ok {
		t.Error("fields without a stored version were kept")
	}
}

// TestCachedNotifications notes mails about responses to a form whose addresses change between
// them, while its fields are in memory.
func TestCachedNotifications(t *testing.T) {
	t.Parallel()

	p, user := projectdbtest.New(t), projectdbtest.UUID(t)
	f := newForm(t, p)
	field := newField(t, p, f.UUID, FieldInput{Label: "name", Type: "text"})
	update := func(u FormUpdate) {
		t.Helper()

		if _, err := UpdateForm(t.Context(), p, user, f.UUID, u); err != nil {
			t.Fatal(err)
		}
	}

	update(FormUpdate{State: optOf("open")})
	cache, want := NewFieldCache(), 0
	for _, emails := range [][]string{nil, {"ada@example.com"}, {}} {
		if emails != nil {
			update(FormUpdate{NotifyEmails: optOf(emails)})
		}

		for range 3 {
			receipt, err := CreateResponse(t.Context(), p, cache, f.UUID, projectdbtest.UUID(t),
				Answers{field.UUID.String(): jsontext.Value(`"Ann"`)}, Attachments{})
			if err != nil || receipt.Notify != (len(emails) > 0) {
				t.Fatalf("with addresses %q: got %+v (%v)", emails, receipt, err)
			}

			want += len(emails)
		}

		got, err := pg.Value[int](t.Context(), p.Trusted(), `select count(*) from forms.notifications`)
		if err != nil || got != want {
			t.Errorf("with addresses %q: got %d notes (%v), want %d", emails, got, err, want)
		}
	}
}
