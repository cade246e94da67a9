package form

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// slowPattern takes one step per instruction, some 2,000, for each character.
const slowPattern = `(?:(?:.?){1000})*!`

func slowForm(n int, text string) (fieldSet, Answers) {
	var d fieldSet
	in := Answers{}
	answer, _ := json.Marshal(text)
	for range n {
		f := Field{UUID: uuid.New(), Definition: Definition{Label: "a", Type: "text", Pattern: new(slowPattern)}}
		d.fields = append(d.fields, f)
		in[f.UUID.String()] = answer
	}

	return d, in
}

// TestPatternBudget checks that values beyond the budget are refused without matching,
// each on its own and all of a response together.
func TestPatternBudget(t *testing.T) {
	t.Parallel()

	p, err := newPattern(slowPattern)
	if err != nil {
		t.Fatal(err)
	}

	maxLength := int(p.maxLength())
	if int64(maxLength)*p.steps > maxMatchSteps || maxLength < 1000 {
		t.Fatalf("got values of %d characters at %d steps, want 1000 or more within %d steps", maxLength, p.steps,
			maxMatchSteps)
	}

	const apart, together, wrong = "must be at most", "too long to be checked", "expected format"
	for _, test := range []struct {
		fields, length int
		want           []string // of the first fields; the last applies to the rest
	}{
		{10, 100_000, []string{apart}},
		{10, maxLength + 1, []string{apart}},
		{3, maxLength, []string{wrong, together}},
		{3, maxLength / 2, []string{wrong, wrong, together}},
		{10, 100, []string{wrong}},
	} {
		d, in := slowForm(test.fields, strings.Repeat("a", test.length))
		_, err := d.validate(t.Context(), in, nil)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || len(e.Fields) != test.fields {
			t.Fatalf("%d fields of %d characters: got %v, want a problem per field", test.fields, test.length, err)
		}

		for i, f := range e.Fields {
			if want := test.want[min(i, len(test.want)-1)]; !strings.Contains(f.Message, want) {
				t.Errorf("%d fields of %d characters: field %d: got %s, want %s", test.fields, test.length, i,
					f.Message, want)
			}
		}
	}
}

// TestPatternsBeyondLimits checks that answers to forms with patterns beyond today's limits are
// refused.
func TestPatternsBeyondLimits(t *testing.T) {
	t.Parallel()

	d, in := slowForm(30, "a")
	_, err := d.validate(t.Context(), in, nil)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Fields[29].Message != errPatternsTooComplex.Error() {
		t.Errorf("30 heavy patterns: got %v, want %v", err, errPatternsTooComplex)
	}

	d, in = slowForm(1, "a")
	d.fields[0].Pattern = new(`(?:[\pL\pS\pM]?){1000}`)
	_, err = d.validate(t.Context(), in, nil)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Fields[0].Message != errPatternsTooComplex.Error() {
		t.Errorf("too complex pattern: got %v, want %v", err, errPatternsTooComplex)
	}
}

func TestValidateCanceled(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	d, in := slowForm(1, "a")
	if _, err := d.validate(ctx, in, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestPatternCache(t *testing.T) {
	t.Parallel()

	c := newPatternCache(5000)

	first, err := compilePattern(c, "a+")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := compilePattern(c, "a+"); again != first {
		t.Errorf("compiled twice (%v)", err)
	}
	if _, err := compilePattern(c, "("); err == nil || c.Len() != 1 {
		t.Errorf("an invalid pattern: got %v, %d patterns in the cache", err, c.Len())
	}

	for i := range 20 {
		if _, err := compilePattern(c, fmt.Sprintf("%d(?:.?){500}", i)); err != nil {
			t.Fatal(err)
		}
		if got := c.Weight(); got > 5000 || got == 0 {
			t.Fatalf("%d patterns weigh %d", c.Len(), got)
		}
	}
}
