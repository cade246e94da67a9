package statement

import (
	"github.com/go-json-experiment/json/jsontext"
)

// Rows are rows with values in their JSON representation, an array of arrays.
type Rows struct{ text []byte }

// MarshalJSONTo writes the rows.
func (r Rows) MarshalJSONTo(e *jsontext.Encoder) error {
	if len(r.text) == 0 {
		return e.WriteValue(jsontext.Value("[]"))
	}
	return e.WriteValue(append(r.text, ']'))
}

// addRow adds a row. types are the column types.
func (r *Rows) addRow(types []columnType, values [][]byte) error {
	start := byte('[')
	if len(r.text) > 0 {
		start = ','
	}

	r.text = append(r.text, start, '[')
	for i, v := range values {
		if i > 0 {
			r.text = append(r.text, ',')
		}

		var err error
		if r.text, err = appendValue(r.text, types[i].oid, v); err != nil {
			return err
		}
	}

	r.text = append(r.text, ']')
	return nil
}
