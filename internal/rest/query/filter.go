package query

import "strings"

// class distinguishes operators by the syntax after their name.
type class uint8

const (
	unknown    class = iota
	plain            // .value
	quantified       // [(any)|(all)].value
	search           // [(configuration)].value
	listed           // .(a,b)
	is               // .null and the like
)

func classOf(operator string) class {
	switch operator {
	case "eq", "gt", "gte", "lt", "lte", "like", "ilike", "match", "imatch":
		return quantified
	case "in":
		return listed
	case "is":
		return is
	case "neq", "isdistinct", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj":
		return plain
	case "fts", "plfts", "phfts", "wfts":
		return search
	}

	return unknown
}

// parseFilter parses [not.]operator.value into c. If text is not a filter but can be a plain value,
// filter is false. err then describes the syntax error, unless allowPlain is set, which accepts a
// plain value.
func parseFilter(text string, c *Comparison, allowPlain bool) (filter bool, err error) {
	p := parser{what: "filter", text: text}
	kind, want := p.operator(c)
	if kind == unknown {
		if allowPlain && !c.Not {
			return false, nil
		}
		return false, p.expected(want)
	}

	switch kind {
	case listed:
		c.List, err = p.list()
	case is:
		c.Value, err = p.isOperand()
	default:
		c.Value = text[p.pos:]
		return true, nil
	}

	if err != nil {
		return false, err
	}

	if p.blanks(); !p.done() {
		return false, p.expected("end of input")
	}

	return true, nil
}

// operator parses [not.]operator[(…)]. including the last dot. Otherwise it returns the expected
// syntax at pos; c.Not reports whether it consumed "not.".
func (p *parser) operator(c *Comparison) (kind class, want string) {
	if c.Not = p.takeText("not."); c.Not {
		want = "operator (eq, gt, ...)"
	} else {
		want = `"not" or operator (eq, gt, ...)`
	}

	end := p.pos
	for end < len(p.text) && 'a' <= p.text[end] && p.text[end] <= 'z' {
		end++
	}

	c.Operator = p.text[p.pos:end]
	if kind = classOf(c.Operator); kind == unknown {
		return unknown, want
	}

	p.pos = end
	want = `"."`
	switch kind {
	case quantified:
		if p.takeText("(any)") {
			c.Quantifier = "any"
		} else if p.takeText("(all)") {
			c.Quantifier = "all"
		} else {
			want = `"(any)", "(all)" or "."`
		}
	case search:
		if !p.take('(') {
			want = `"(" or "."`
			break
		}

		start := p.pos
		var err error
		if c.Config, err = p.identifier(); err != nil {
			p.pos = start
			return unknown, "name of a text search configuration"
		}

		if !p.take(')') {
			return unknown, `")"`
		}
	}

	if !p.take('.') {
		return unknown, want
	}

	return kind, ""
}

// list parses (a,b). An element is quoted only if its closing quote ends it; otherwise all
// characters count, including blanks.
func (p *parser) list() ([]string, error) {
	p.blanks()

	if !p.take('(') {
		return nil, p.expected(`"("`)
	}

	p.blanks() // only before the first element: elsewhere blanks belong to it
	rest := p.text[p.pos:]
	if closing := strings.IndexByte(rest, ')'); closing >= 0 {
		rest = rest[:closing]
		if strings.Trim(rest, " ") == "" {
			p.pos += closing + 1
			return nil, nil
		}
	}

	list := make([]string, 0, 1+strings.Count(rest, ","))
	for {
		list = append(list, p.word())
		if !p.take(',') {
			break
		}
	}

	if !p.take(')') {
		return nil, p.expected(`"," or ")"`)
	}

	return list, nil
}

// word parses a value up to a comma or closing parenthesis, or a quoted one that ends there.
func (p *parser) word() string {
	start := p.pos
	if p.at('"') {
		value, err := p.quoted()
		if err == nil && (p.done() || p.at(',') || p.at(')')) {
			return value
		}

		p.pos = start
	}

	if n := strings.IndexAny(p.text[start:], ",)"); n >= 0 {
		p.pos += n
	} else {
		p.pos = len(p.text)
	}

	return p.text[start:p.pos]
}

// isOperand parses the operand after is.
func (p *parser) isOperand() (string, error) {
	end := p.pos
	for end < len(p.text) && (isTypeCharacter(p.text[end]) && p.text[end] != ' ') {
		end++
	}

	for _, v := range [...]string{"null", "not_null", "true", "false", "unknown"} {
		if strings.EqualFold(p.text[p.pos:end], v) {
			p.pos = end
			return v, nil
		}
	}

	return "", p.expected("isVal: (null, not_null, true, false, unknown)")
}
