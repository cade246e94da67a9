package form

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
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
