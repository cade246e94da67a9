package query

// parseOrder parses the value of order=.
func parseOrder(text string) ([]Term, error) {
	p := parser{what: "order", text: text}
	terms := make([]Term, 0, p.countItems())
	for {
		terms = append(terms, Term{})
		if err := p.term(&terms[len(terms)-1]); err != nil {
			return nil, err
		}

		p.blanks()

		if !p.take(',') {
			break
		}
	}

	if !p.done() {
		return nil, p.expected(`"," or end of input`)
	}

	return terms, nil
}

func (p *parser) term(t *Term) (err error) {
	if t.Field, err = p.field(); err != nil {
		return err
	}

	if t.Field.Path == nil && p.take('(') {
		t.Relation = t.Field.Name

		if t.Field, err = p.field(); err != nil {
			return err
		}

		if !p.take(')') {
			return p.expected(`")"`)
		}
	}

	want := `"asc", "desc", "nullsfirst" or "nullslast"`
	switch {
	case p.takeText(".asc"):
		want = `"nullsfirst" or "nullslast"`
	case p.takeText(".desc"):
		t.Descending = true
		want = `"nullsfirst" or "nullslast"`
	}

	switch {
	case p.takeText(".nullsfirst"):
		t.Nulls = "first"
	case p.takeText(".nullslast"):
		t.Nulls = "last"
	case p.take('.'):
		return p.expected(want)
	}

	return nil
}
