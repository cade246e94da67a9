package form

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"sync"
)

// Bounds of what patterns cost. RE2 takes at worst one step for each instruction and character, of some 10 to 25 ns.
const (
	maxProgram   = 2500      // instructions of a pattern
	maxWeight    = 50_000    // weight of all patterns of a form
	maxSteps     = 4_000_000 // steps of matching the answers of one response
	patternsKept = 300_000   // weight of the patterns that are kept compiled, some 100 bytes each
	// bounds of character classes that cost as much as an instruction when a pattern is compiled
	charsPerWeight  = 16
	anchoredPattern = `\A(?:`
)

// pattern is a compiled pattern, which matches whole values.
type pattern struct {
	whole  *regexp.Regexp
	steps  int64 // for each character
	weight int64 // of compiling and keeping it
}

// maxLength returns the longest value that the pattern can be asked about, in characters.
func (p *pattern) maxLength() int64 { return maxSteps / p.steps }

// errComplex says that a pattern is larger than it may be.
var errComplex = errors.New("is too complex")

// newPattern compiles a pattern. The error says what is wrong with it, and is errComplex if only its size is.
func newPattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("is not an RE2 expression: " + reason(err))
	}

	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, errComplex
	}

	p := &pattern{steps: int64(len(program.Inst))}
	for i := range program.Inst {
		p.weight += charsPerWeight + int64(len(program.Inst[i].Rune))
	}

	if p.weight /= charsPerWeight; p.weight > maxWeight {
		return nil, errComplex
	}

	p.whole, err = regexp.Compile(anchoredPattern + text + `)\z`)
	if err != nil { // perhaps it ends in a quotation that \Q opened
		p.whole, err = regexp.Compile(anchoredPattern + text + `\E)\z`)
	}
	if err != nil { // the group around it was one too many
		return nil, errComplex
	}

	return p, nil
}

// patterns are the compiled patterns of this process.
var patterns = patternCache{most: patternsKept}

// patternCache keeps compiled patterns by their text, so that a form's are compiled once for all responses. It is safe for
// concurrent use.
type patternCache struct {
	most int64 // weight

	mu     sync.Mutex
	known  map[string]*pattern
	weight int64
	misses int
}

// get returns a pattern, and keeps it. Of different calls at one moment each may compile it.
func (c *patternCache) get(text string) (*pattern, error) {
	c.mu.Lock()
	p := c.known[text]
	c.mu.Unlock()

	if p != nil {
		return p, nil
	}

	p, err := newPattern(text)

	c.mu.Lock()
	defer c.mu.Unlock()

	c.misses++

	if err != nil || c.known[text] != nil {
		return p, err
	}

	if c.known == nil {
		c.known = map[string]*pattern{}
	}

	c.known[text] = p
	c.weight += p.weight
	for other, old := range c.known { // in no order
		if c.weight <= c.most {
			break
		}

		if other != text {
			delete(c.known, other)
			c.weight -= old.weight
		}
	}

	return p, nil
}

// effort is what is left for the patterns of one response.
type effort struct {
	steps  int64
	weight int64
}

func newEffort() *effort { return &effort{maxSteps, maxWeight} }

// match reports whether a value of so many characters matches a pattern. It fails, without asking, if that would take more than is
// left.
func (e *effort) match(p *pattern, value string, length int64) (bool, error) {
	if length > p.maxLength() {
		return false, errors.New("must be at most " + count(p.maxLength(), "character") + ", for its pattern")
	}
	if e.steps -= p.steps * length; e.steps < 0 {
		return false, errors.New("is too long: the answers take more work to check than a response may")
	}

	return p.whole.MatchString(value), nil
}

// load takes the weight of a pattern, all that is left for nil, one that is too complex. It reports whether there was so much.
func (e *effort) load(p *pattern) bool {
	if p == nil {
		e.weight = -1
		return false
	}

	e.weight -= p.weight
	return e.weight >= 0
}

// tooLong says that a pattern is too complex for the longest value that its field takes, nil if it is not.
func (p *pattern) tooLong(maxLength *int64) error {
	if maxLength == nil || min(*maxLength, maxAnswer) <= p.maxLength() {
		return nil
	}

	return errors.New("is too complex for values of " + count(*maxLength, "character") +
		": with this pattern max_length is at most " + strconv.FormatInt(p.maxLength(), 10))
}
