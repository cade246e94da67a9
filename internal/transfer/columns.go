package transfer

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/schema"
)

// ImportedColumn is a column that has values in the file.
type ImportedColumn struct {
	Name   string `json:"name"`
	Header string `json:"header" doc:"Name of the column in the file; empty without a header."`
	Type   string `json:"type" doc:"Type of a new table's column; empty for an existing table."`

	skipped        bool    // the database computes it
	number, date   bool    // its type has numbers, or dates
	numbers, dates reading // how they are read

	typeName string          // as in a cast; only for an existing table
	json     schema.JSONForm // how values look in JSON
}

// newImportedColumn returns the table column for a header in the file.
func newImportedColumn(c schema.BulkColumn, header string) ImportedColumn {
	return ImportedColumn{Name: c.Name, Header: header, number: c.Number, date: c.Date,
		typeName: c.Type, json: c.JSON}
}

// convert returns the value as PostgreSQL reads it for the column's type, or the reason against it.
func (c ImportedColumn) convert(v value) ([]byte, *Rejected) {
	switch {
	case v.null:
		return nil, nil
	case v.kind != 0:
		if text := c.fromJSON(v); text != nil {
			return text, nil
		}
	case c.number:
		return c.convertNumber(v.text)
	}

	if c.date && v.kind != '0' {
		return c.convertDate(v.text)
	}

	return v.text, nil
}

func (c ImportedColumn) convertNumber(text []byte) ([]byte, *Rejected) {
	n := parseNumber(text)
	if plain := n.in(c.numbers); plain != nil {
		return plain, nil
	}

	switch {
	case n.point != nil || n.comma != nil:
		return nil, &Rejected{Column: &c.Name, Code: "invalid_value", Message: "has the number " + quote(string(text)) +
			", which can be read in several ways or not like the others of the file; import with decimal=comma or " +
			"decimal=point"}
	case c.numbers == commaFirst && bytes.IndexByte(text, '.') >= 0: // PostgreSQL would read a decimal point
		return nil, &Rejected{Column: &c.Name, Code: "invalid_value",
			Message: "has " + quote(string(text)) + ", which is no number with a decimal comma"}
	}

	return text, nil
}

func (c ImportedColumn) convertDate(text []byte) ([]byte, *Rejected) {
	d, local, valid := parseLocalDate(string(text))
	if !local {
		return text, nil
	}

	if valid {
		if iso := d.in(c.dates); iso != "" {
			return []byte(iso), nil
		}
	}

	reason := "which the calendar does not have"
	switch {
	case d.hasShortYear():
		reason = "whose year has two digits"
	case valid && c.dates == eachAlone:
		reason = "whose day and month can be swapped"
	case valid:
		reason = "whose day and month are not in the order of the file's other dates"
	}

	return nil, &Rejected{Column: &c.Name, Code: "invalid_value",
		Message: "has the date " + quote(string(text)) + ", " + reason + "; write it as 2026-12-31"}
}

// fromJSON returns a JSON value's text for a type with another text form; nil if the value's text
// will do.
func (c ImportedColumn) fromJSON(v value) []byte {
	switch {
	case c.json == schema.JSONText && v.kind == '"', c.json == schema.JSONStructure && v.kind == '"':
		text, err := jsontext.AppendQuote(nil, v.text)
		if err != nil { // invalid UTF-8, which the row check reports
			return nil
		}
		return text
	case c.json == schema.JSONPairs && v.kind == '{':
		return pairs(v.text)
	}

	return nil
}

// pairs returns a JSON object's members as hstore text; nil if a value is no scalar.
func pairs(object []byte) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	_, _ = d.ReadToken() // the brace: the value was parsed before

	text := []byte{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		text = appendPairText(append(text, ", "...), name.String())

		member, err := d.ReadToken()
		switch {
		case err != nil || member.Kind() == '{' || member.Kind() == '[':
			return nil
		case member.Kind() == 'n':
			text = append(text, "=>NULL"...)
		default:
			text = appendPairText(append(text, "=>"...), member.String())
		}
	}

	return bytes.TrimPrefix(text, []byte(", "))
}

func appendPairText(to []byte, text string) []byte {
	to = append(to, '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			to = append(to, '\\')
		}
		to = append(to, text[i])
	}

	return append(to, '"')
}
