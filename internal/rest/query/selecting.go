package query

import "strings"

// parseSelect parses the value of select=; nil means all columns.
func parseSelect(text string) ([]Item, error) {
	p := parser{what: "select parameter", text: text}
	if p.blanks(); p.done() {
		return nil, nil
	}

	items, err := p.items()
	if err != nil {
		return nil, err
	}

	return items, p.end(`"," or end of input`)
}

// items parses comma-separated items, at least one.
func (p *parser) items() ([]Item, error) {
	items := make([]Item, 0, p.countItems())
	for {
		items = append(items, Item{})
		if err := p.item(&items[len(items)-1]); err != nil {
			return nil, err
		}

		p.blanks()

		if !p.take(',') {
			return items, nil
		}
	}
}

// countItems estimates the number of items up to the parenthesis that closes this level.
func (p *parser) countItems() int {
	n, depth := 1, 0
	for i := p.pos; i < len(p.text) && n < 32; i++ {
		switch p.text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return n
			}
		case ',':
			if depth == 0 {
				n++
			}
		}
	}

	return n
}

func (p *parser) item(it *Item) (err error) {
	p.blanks()

	if p.take('*') {
		it.Kind = Star
		return nil
	}

	if p.takeText("...") {
		it.Kind = Spread

		if it.Relation, err = p.identifier(); err != nil {
			return err
		}

		return p.embed(it)
	}

	bare := !p.at('"')

	name, err := p.identifier()
	if err != nil {
		return err
	}

	if p.at(':') && !p.ahead("::") {
		p.pos++
		p.blanks()
		it.Alias, bare = name, !p.at('"')

		if name, err = p.identifier(); err != nil {
			return err
		}
	}

	switch {
	case bare && name == "count" && p.takeText("()"):
		it.Aggregate = "count"
		it.AggregateCast, err = p.cast()
		return err
	case p.at('!'), p.at('('):
		it.Kind, it.Relation = Embed, name
		return p.embed(it)
	}

	it.Field.Name = name
	return p.column(it)
}

// column parses the part after a column's name: path, cast, aggregate, and its cast.
func (p *parser) column(it *Item) (err error) {
	if it.Field.Path, err = p.jsonPath(); err != nil {
		return err
	}
	if it.Cast, err = p.cast(); err != nil {
		return err
	}

	if !p.take('.') {
		return nil
	}

	for _, name := range [...]string{"sum", "avg", "count", "max", "min"} {
		if p.ahead(name) && strings.HasPrefix(p.text[p.pos+len(name):], "()") {
			p.pos += len(name) + len("()")
			it.Aggregate = name
			it.AggregateCast, err = p.cast()
			return err
		}
	}

	return p.expected(`"sum()", "avg()", "count()", "max()" or "min()"`)
}

// cast parses the type name after ::, if any. It becomes SQL text, so it consists of words only.
func (p *parser) cast() (string, error) {
	if !p.takeText("::") {
		return "", nil
	}

	start := p.pos

	for p.pos < len(p.text) && isTypeCharacter(p.text[p.pos]) {
		p.pos++
	}

	name := strings.Trim(p.text[start:p.pos], " ")
	if name == "" {
		return "", p.expected("letter, digit, \"_\" or \" \"")
	}

	return name, nil
}

func isTypeCharacter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == ' '
}

// embed parses the part after a relation's name: hints, and items in parentheses.
func (p *parser) embed(it *Item) (err error) {
	for p.take('!') {
		p.blanks()
		start, bare := p.pos, !p.at('"')
		word, err := p.identifier()
		switch {
		case err != nil:
			return err
		case bare && word == "inner" && it.Join == DefaultJoin:
			it.Join = Inner
		case bare && word == "left" && it.Join == DefaultJoin:
			it.Join = Left
		case it.Hint == "" && !(bare && (word == "inner" || word == "left")):
			it.Hint = word
		default:
			p.pos = start
			return p.expected("at most one hint and one of inner and left")
		}
	}

	if !p.at('(') {
		return p.expected(`"!" or "("`)
	}

	if err := p.enter(); err != nil {
		return err
	}

	defer p.leave()

	p.pos++

	if p.blanks(); p.take(')') {
		it.Empty = true
		return nil
	}

	if it.Items, err = p.items(); err != nil {
		return err
	}

	if !p.take(')') {
		return p.expected(`")" or ","`)
	}

	return nil
}
