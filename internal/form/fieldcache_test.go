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

	var c FieldCache
	for range maxCachedForms + 10 {
		c.put(uuid.New(), set("short"))
	}
	if got := len(c.forms); got != maxCachedForms {
		t.Errorf("got %d forms, want %d", got, maxCachedForms)
	}

	last := uuid.New()
	for range 10 {
		c.put(last, set(large))
		c.put(uuid.New(), set(large))
	}
	if c.bytes > maxCachedBytes || c.bytes < maxCachedBytes/2 {
		t.Errorf("got %d bytes, want up to %d", c.bytes, maxCachedBytes)
	}

	sum := 0
	for _, d := range c.forms {
		sum += d.size()
	}
	if sum != c.bytes {
		t.Errorf("got %d bytes, want %d", c.bytes, sum)
	}

	unknown := uuid.New()
	c.put(unknown, fieldSet{})
	if _, ok := c.get(unknown); ok {
		t.Error("fields without a stored version were kept")
	}
}
