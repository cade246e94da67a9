package query

import "strings"

// parseLogic parses and='s or or='s value. The key supplies the operator and its negation.
func parseLogic(text string, not, or bool) (*Group, error) {
	g := &Group{Not: not, Or: or}
	p := parser{what: "logic tree", text: text, shift: len("and")}
	if or {
		p.shift = len("or")
	}
	if not {
		p.shift += len("not.")
	}

	if err := p.conditions(g); err != nil {
		return nil, err
	}

	return g, p.end("end of input")
}

// conditions parses (condition,…), at least one.
func (p *parser) conditions(g *Group) error {
	if !p.at('(') {
		return p.expected(`"("`)
	}

	if err := p.enter(); err != nil {
		return err
	}

	defer p.leave()

	p.pos++
	g.Conditions = make([]Condition, 0, p.countItems())
	for {
		c, err := p.condition()
		if err != nil {
			return err
		}

		g.Conditions = append(g.Conditions, c)
		p.blanks()

		if !p.take(',') {
			break
		}
	}

	if !p.take(')') {
		return p.expected(`"," or ")"`)
	}

	return nil
}

func (p *parser) condition() (Condition, error) {
	p.blanks()

	if not, or, ok := p.group(); ok {
		g := &Group{Not: not, Or: or}
		return g, p.conditions(g)
	}

	start := p.pos
	c := &Comparison{}

	var err error
	if c.Field, err = p.field(); err != nil {
		return nil, p.conditionError(start, err)
	}

	if !p.take('.') {
		return nil, p.conditionError(start, p.expected(`"."`))
	}

	kind, want := p.operator(c)
	switch kind {
	case unknown:
		return nil, p.conditionError(start, p.expected(want))
	case listed:
		c.List, err = p.list()
	case is:
		c.Value, err = p.isOperand()
	default:
		c.Value = p.value()
	}

	if err != nil {
		return nil, err
	}

	return c, nil
}

// group parses [not.]and or [not.]or if a parenthesis follows. Otherwise the text can be a column
// name.
func (p *parser) group() (not, or, ok bool) {
	rest, not := strings.CutPrefix(p.text[p.pos:], "not.")
	rest, or = strings.CutPrefix(rest, "or")
	if !or {
		if rest, ok = strings.CutPrefix(rest, "and"); !ok {
			return false, false, false
		}
	}

	rest = strings.TrimLeft(rest, " ")
	if !strings.HasPrefix(rest, "(") {
		return false, false, false
	}

	p.pos = len(p.text) - len(rest)
	return not, or, true
}

// conditionError returns the error for a text at start that is neither a group nor, by err, a
// comparison. If the client meant a group, the error describes the group's syntax.
func (p *parser) conditionError(start int, err error) error {
	failed := p.pos
	p.pos = start
	switch {
	case failed == start:
		return p.expected(fieldName + ", negation operator (not) or logic operator (and, or)")
	case p.takeText("not."):
		if !p.takeText("and") && !p.takeText("or") {
			return p.expected("logic operator (and, or)")
		}
		return p.expected(`"("`)
	case strings.HasPrefix(p.text[failed:], "(") && (p.takeText("and") || p.takeText("or")):
		return p.expected(`"("`)
	}

	return err
}

// value parses a value within a group: quoted, an array literal, or up to a comma or closing
// parenthesis.
func (p *parser) value() string {
	if !p.at('{') {
		return p.word()
	}

	start := p.pos
	if n := strings.IndexAny(p.text[start+1:], "{}"); n >= 0 && p.text[start+1+n] == '}' {
		p.pos = start + 1 + n + 1
		if p.at(',') || p.at(')') {
			return p.text[start:p.pos]
		}

		p.pos = start
	}

	return p.word()
}
