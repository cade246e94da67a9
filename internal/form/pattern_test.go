package form

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"socle/internal/fault"
)

// slow takes one step per instruction, some 2,000, for each character.
const slow = `(?:(?:.?){1000})*!`

func slowForm(n int, text string) (definition, Answers) {
	var d definition
	in := Answers{}
	answer, _ := json.Marshal(text)
	for range n {
		f := Field{UUID: uuid.New(), Definition: Definition{Label: "a", Type: "text", Pattern: new(slow)}}
		d.fields = append(d.fields, f)
		in[f.UUID.String()] = answer
	}

	return d, in
}

// TestPatternsTakeBoundedWork checks that values beyond the budget are refused without matching,
// each on its own and all of a response together.
func TestPatternsTakeBoundedWork(t *testing.T) {
	t.Parallel()

	p, err := newPattern(slow)
	if err != nil {
		t.Fatal(err)
	}

	most := int(p.maxLength())
	if int64(most)*p.steps > maxSteps || most < 1000 {
		t.Fatalf("values of %d characters at %d steps", most, p.steps)
	}

	const apart, together, wrong = "for its pattern", "more work", "must match"
	for _, test := range []struct {
		fields, length int
		want           []string // of the first fields; the last applies to the rest
	}{
		{10, 100_000, []string{apart}},
		{10, most + 1, []string{apart}},
		{3, most, []string{wrong, together}},
		{3, most / 2, []string{wrong, wrong, together}},
		{10, 100, []string{wrong}},
	} {
		d, in := slowForm(test.fields, strings.Repeat("a", test.length))
		_, err := d.judge(t.Context(), in, nil)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || len(e.Fields) != test.fields {
			t.Fatalf("%d fields of %d characters: %v", test.fields, test.length, err)
		}

		for i, f := range e.Fields {
			if want := test.want[min(i, len(test.want)-1)]; !strings.Contains(f.Message, want) {
				t.Errorf("%d fields of %d characters: field %d: %s, want %s", test.fields, test.length, i,
					f.Message, want)
			}
		}
	}
}

// TestPatternsOfOldForms checks that answers to forms with patterns beyond today's limits are
// refused.
func TestPatternsOfOldForms(t *testing.T) {
	t.Parallel()

	d, in := slowForm(30, "a")
	_, err := d.judge(t.Context(), in, nil)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Fields[29].Message != errTooHeavy.Error() {
		t.Errorf("30 heavy patterns: %v", err)
	}

	d, in = slowForm(1, "a")
	d.fields[0].Pattern = new(`(?:[\pL\pS\pM]?){1000}`)
	_, err = d.judge(t.Context(), in, nil)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Fields[0].Message != errTooHeavy.Error() {
		t.Errorf("a pattern that is too complex: %v", err)
	}
}

func TestJudgeEndsWithItsClient(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	d, in := slowForm(1, "a")
	if _, err := d.judge(ctx, in, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestPatternsAreCompiledOnce(t *testing.T) {
	t.Parallel()

	c := patternCache{most: 5000}
	for range 3 {
		if _, err := c.get("a+"); err != nil {
			t.Fatal(err)
		}
	}

	if c.misses != 1 {
		t.Errorf("compiled %d times", c.misses)
	}

	for i := range 20 {
		if _, err := c.get(fmt.Sprintf("%d(?:.?){500}", i)); err != nil {
			t.Fatal(err)
		}

		var sum int64
		for _, p := range c.known {
			sum += p.weight
		}

		if sum != c.weight || sum > c.most || sum == 0 {
			t.Fatalf("%d patterns weigh %d, noted %d, of at most %d", len(c.known), sum, c.weight, c.most)
		}
	}
}
