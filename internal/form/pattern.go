package form

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"

	"github.com/socle-dev/socle/internal/cache"
)

// Cost limits for patterns. RE2 takes at most one step per instruction and character, some 10 to 25
// ns each.
const (
	maxInstructions    = 2500      // instructions per pattern
	maxPatternWeight   = 50_000    // weight per form
	maxMatchSteps      = 4_000_000 // matching steps per response
	patternCacheWeight = 300_000   // weight of the pattern cache, some 100 bytes per unit
	// class range bounds whose compilation costs as much as an instruction
	runesPerWeight = 16
	patternPrefix  = `\A(?:`
)

// pattern is a compiled pattern that matches whole values.
type pattern struct {
	regexp *regexp.Regexp
	steps  int64 // per character
	weight int64 // cost of compiling and caching it
}

// maxLength returns the longest value in characters that may be matched.
func (p *pattern) maxLength() int64 { return maxMatchSteps / p.steps }

// errTooComplex reports a pattern beyond the limits.
var errTooComplex = errors.New("is too complex")

// newPattern compiles a pattern. The error describes the problem; it is errTooComplex if only the
// size is the problem.
func newPattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("is not an RE2 expression: " + syntaxMessage(err))
	}

	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxInstructions {
		return nil, errTooComplex
	}

	p := &pattern{steps: int64(len(program.Inst))}
	for i := range program.Inst {
		p.weight += runesPerWeight + int64(len(program.Inst[i].Rune))
	}

	if p.weight /= runesPerWeight; p.weight > maxPatternWeight {
		return nil, errTooComplex
	}

	p.regexp, err = regexp.Compile(patternPrefix + text + `)\z`)
	if err != nil { // the pattern may end in a quotation opened by \Q
		p.regexp, err = regexp.Compile(patternPrefix + text + `\E)\z`)
	}
	if err != nil { // the added group exceeds a limit of the parser
		return nil, errTooComplex
	}

	return p, nil
}

// patterns caches compiled patterns by text, so that each is compiled once for all responses.
// responses.
var patterns = newPatternCache(patternCacheWeight)

func newPatternCache(weight int64) *cache.Cache[string, *pattern] {
	return cache.New[string, *pattern](cache.Limits{Weight: weight})
}

// compilePattern returns a pattern from a cache, or compiles and caches it. Concurrent calls may
// compile the same pattern.
func compilePattern(c *cache.Cache[string, *pattern], text string) (*pattern, error) {
	if p, ok := c.Get(text); ok {
		return p, nil
	}

	p, err := newPattern(text)
	if err == nil {
		c.PutWeighted(text, p, p.weight)
	}

	return p, err
}

// patternBudget is a response's remaining budget for patterns.
type patternBudget struct {
	steps  int64
	weight int64
}

func newPatternBudget() *patternBudget { return &patternBudget{maxMatchSteps, maxPatternWeight} }

// match reports whether value, length characters long, matches p. It fails without matching if the
// budget does not suffice.
func (e *patternBudget) match(p *pattern, value string, length int64) (bool, error) {
	if length > p.maxLength() {
		return false, errors.New("must be at most " + plural(p.maxLength(), "character"))
	}
	if e.steps -= p.steps * length; e.steps < 0 {
		return false, errors.New("is too long to be checked together with the other answers")
	}

	return p.regexp.MatchString(value), nil
}

// spend takes p's weight from the budget and reports whether it sufficed. p is nil if the pattern
// is too complex, which exhausts the budget.
func (e *patternBudget) spend(p *pattern) bool {
	if p == nil {
		e.weight = -1
		return false
	}

	e.weight -= p.weight
	return e.weight >= 0
}

// checkMaxLength returns an error if p is too complex for the longest value that the field accepts.
func (p *pattern) checkMaxLength(maxLength *int64) error {
	if maxLength == nil || min(*maxLength, maxAnswerLength) <= p.maxLength() {
		return nil
	}

	return errors.New("is too complex for values of " + plural(*maxLength, "character") +
		": with this pattern max_length is at most " + strconv.FormatInt(p.maxLength(), 10))
}
