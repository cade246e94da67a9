package pg

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxExponent is the maximum exponent for a JSON number: more than JavaScript's, and far within
// numeric's range.
const maxExponent = 1000

// Storable reports whether PostgreSQL can store a text: UTF-8 without null characters.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// StorableValues reports whether PostgreSQL can store all names and values, such as a query
// string's.
func StorableValues(values map[string][]string) bool {
	for name, all := range values {
		if !Storable(name + strings.Join(all, "")) {
			return false
		}
	}

	return true
}

// StorableJSON reports whether jsonb can store a JSON text that [json.Unmarshal] accepts: UTF-8
// without escaped null characters, lone surrogates and numbers out of range.
func StorableJSON(text []byte) bool {
	if !utf8.Valid(text) || !storableEscapes(text) {
		return false
	}
	if !bytes.ContainsAny(text, "eE") {
		return true
	}

	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return true // the end, since the text is JSON
		}
		if n, ok := t.(json.Number); ok && !storableNumber(string(n)) {
			return false
		}
	}
}

// storableNumber reports whether a number's exponent is within the bound.
func storableNumber(n string) bool {
	i := strings.IndexAny(n, "eE")
	if i < 0 {
		return true
	}

	exponent, err := strconv.Atoi(n[i+1:])
	return err == nil && -maxExponent <= exponent && exponent <= maxExponent
}

// storableEscapes reports whether all \u escapes in a JSON text are characters but the null one.
func storableEscapes(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return true
		}

		first, ok := escaped(text[i:])
		if !ok { // another escape
			text = text[i+2:]
			continue
		}
		if first == 0 {
			return false
		}

		text = text[i+6:]
		if !utf16.IsSurrogate(first) {
			continue
		}

		second, ok := escaped(text)
		if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
			return false
		}
		text = text[6:]
	}
}

// escaped returns the UTF-16 code for the \u escape at the beginning of a text.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}

	var code [2]byte
	if _, err := hex.Decode(code[:], text[2:6]); err != nil {
		return 0, false
	}

	return rune(binary.BigEndian.Uint16(code[:])), true
}
