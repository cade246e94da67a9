package repository

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a file in TOML that is being read: its values, their lines, and what was found wrong.
type document struct {
	file   string
	root   map[string]any
	lines  map[string]int  // by path, its keys joined by dots
	read   map[string]bool // value paths that were asked for
	lookup func(name string) (string, bool)

	problems, notes []Remark
}

// maxConfigSize is the maximum configuration size in bytes.
const maxConfigSize = 1 << 20

var byteOrderMark = []byte("\ufeff")

// parseDocument parses a file. It fails with [Problems] for other text than TOML.
func parseDocument(file string, text []byte) (*document, error) {
	d := &document{file: file, root: map[string]any{}, read: map[string]bool{}}
	if len(text) > maxConfigSize {
		return nil, Problems{{File: file, Text: "is larger than 1 MiB"}}
	}

	text = bytes.TrimPrefix(text, byteOrderMark)
	if err := toml.Unmarshal(text, &d.root); err != nil {
		problem := Remark{File: file, Text: strings.TrimPrefix(err.Error(), "toml: ")}
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			problem.Line, _ = e.Position()
		}

		return nil, Problems{problem}
	}

	d.lines = keyLines(text)
	return d, nil
}

// keyLines returns the line of each key in valid TOML, by path.
func keyLines(text []byte) map[string]int {
	k := keyLiner{line: 1, lines: map[string]int{}}
	k.parser.Reset(text)

	var table []string
	for k.parser.NextExpression() {
		switch e := k.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = k.add(nil, e)
		case unstable.KeyValue:
			k.addPair(table, e)
		}
	}

	return k.lines
}

// keyLiner records the lines of keys, which come in file order.
type keyLiner struct {
	parser       unstable.Parser
	offset, line int
	lines        map[string]int
}

// add records an expression's key below a path, and returns the whole path.
func (k *keyLiner) add(path []string, e *unstable.Node) []string {
	path = slices.Clone(path)
	for it := e.Key(); it.Next(); {
		n := it.Node()
		path = append(path, string(n.Data))
		if at := int(n.Raw.Offset); at > k.offset {
			k.line += bytes.Count(k.parser.Data()[k.offset:at], []byte("\n"))
			k.offset = at
		}
		if _, ok := k.lines[strings.Join(path, ".")]; !ok {
			k.lines[strings.Join(path, ".")] = k.line
		}
	}

	return path
}

// addPair records a pair's key, and those in its value.
func (k *keyLiner) addPair(table []string, e *unstable.Node) {
	path := k.add(table, e)
	if e.Value().Kind != unstable.InlineTable {
		return
	}

	for it := e.Value().Children(); it.Next(); {
		k.addPair(path, it.Node())
	}
}

// problem notes a mistake at a key.
func (d *document) problem(key, format string, args ...any) {
	d.problems = addRemark(d.problems, Remark{d.file, d.lines[key], key, fmt.Sprintf(format, args...)})
}

// note notes what a project can't have under a key.
func (d *document) note(key, format string, args ...any) {
	d.notes = addRemark(d.notes, Remark{d.file, d.lines[key], key, fmt.Sprintf(format, args...)})
}

// addRemark adds a remark once: a key may be read for several settings.
func addRemark(all []Remark, r Remark) []Remark {
	if slices.Contains(all, r) {
		return all
	}
	return append(all, r)
}

// section is a table in a document, also one that is not there.
type section struct {
	d      *document
	path   string
	values map[string]any
}

func (d *document) section(path ...string) section {
	s := section{d, "", d.root}
	for _, name := range path {
		s = s.sub(name)
	}

	return s
}

// key returns a value's path.
func (s section) key(name string) string { return strings.TrimPrefix(s.path+"."+name, ".") }

// sub returns a table in the table.
func (s section) sub(name string) section {
	values, ok := s.values[name].(map[string]any)
	if _, there := s.values[name]; there && !ok {
		s.d.read[s.key(name)] = true
		s.d.problem(s.key(name), "must be a table")
	}

	return section{s.d, s.key(name), values}
}

// exists reports whether the table is there.
func (s section) exists() bool { return s.values != nil }

// names returns the table names in the table, sorted.
func (s section) names() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if _, ok := s.values[name].(map[string]any); ok {
			all = append(all, name)
		}
	}

	return all
}

// environmentValue matches a value that stands in the environment.
var environmentValue = regexp.MustCompile(`^env\(([^()]*)\)$`)

func needsVariable(name string) string {
	return "needs the variable " + name + ", which neither the environment nor a file .env has"
}

// value returns a value, that of the environment if it names a variable. It reports false if there
// is none, and notes a variable that is missing.
func (s section) value(name string) (any, bool) {
	v, ok := s.values[name]
	if !ok {
		return nil, false
	}

	s.d.read[s.key(name)] = true
	text, _ := v.(string)
	m := environmentValue.FindStringSubmatch(text)
	if m == nil {
		return v, true
	}

	text, ok = s.d.lookup(m[1])
	if !ok {
		s.d.problem(s.key(name), "%s", needsVariable(m[1]))
	}

	return text, ok
}

// text returns a text.
func (s section) text(name string) (string, bool) {
	v, ok := s.value(name)
	if !ok {
		return "", false
	}

	text, ok := v.(string)
	if !ok {
		s.d.problem(s.key(name), "must be a text")
	}

	return text, ok
}

// flag returns a boolean.
func (s section) flag(name string) (yes, ok bool) {
	v, ok := s.value(name)
	if !ok {
		return false, false
	}

	if text, isText := v.(string); isText { // from the environment
		value, err := strconv.ParseBool(text)
		if v = any(value); err != nil {
			v = nil
		}
	}

	yes, ok = v.(bool)
	if !ok {
		s.d.problem(s.key(name), "must be true or false")
	}

	return yes, ok
}

// is reports whether a boolean is there and true.
func (s section) is(name string) bool {
	yes, _ := s.flag(name)
	return yes
}

// number returns a whole number within bounds.
func (s section) number(name string, least, most int64) (int64, bool) {
	v, ok := s.value(name)
	if !ok {
		return 0, false
	}

	if text, isText := v.(string); isText {
		value, err := strconv.ParseInt(text, 10, 64)
		if v = any(value); err != nil {
			v = nil
		}
	}

	n, ok := v.(int64)
	if !ok || n < least || n > most {
		s.d.problem(s.key(name), "must be a whole number, %d to %d", least, most)
		return 0, false
	}

	return n, true
}

// seconds returns a duration such as "1m0s", or a number of seconds, within bounds.
func (s section) seconds(name string, least, most int64) (int64, bool) {
	text, isText := s.values[name].(string)
	if !isText || environmentValue.MatchString(text) {
		return s.number(name, least, most)
	}

	s.d.read[s.key(name)] = true
	long, err := time.ParseDuration(text)
	n := int64(math.Ceil(long.Seconds()))
	if err != nil || n < least || n > most {
		s.d.problem(s.key(name), "must be a duration such as \"60s\" or \"24h\", %d to %d seconds", least, most)
		return 0, false
	}

	return n, true
}

// sizeForm matches a size with its unit.
var sizeForm = regexp.MustCompile(`(?i)^([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)(?:i?b)?$`)

const maxSize = 1 << 50 // bytes

// bytes returns a size such as "50MiB", or a number of bytes. As in Supabase, units are powers of
// 1024.
func (s section) bytes(name string) (int64, bool) {
	v, ok := s.value(name)
	if !ok {
		return 0, false
	}

	m := sizeForm.FindStringSubmatch(fmt.Sprint(v))
	if m == nil {
		s.d.problem(s.key(name), "must be a size such as \"50MiB\"")
		return 0, false
	}

	exponent := 0
	if m[2] != "" {
		exponent = strings.Index("kmgt", strings.ToLower(m[2])) + 1
	}

	number, err := strconv.ParseFloat(m[1], 64)
	size := number * math.Pow(1024, float64(exponent))
	if err != nil || size < 1 || size > maxSize {
		s.d.problem(s.key(name), "must be a size such as \"50MiB\"")
		return 0, false
	}

	return int64(size), true
}

// texts returns a list of texts.
func (s section) texts(name string) ([]string, bool) {
	v, ok := s.value(name)
	if !ok {
		return nil, false
	}

	items, ok := v.([]any)
	if text, isText := v.(string); isText { // from the environment
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), true
	}

	all := make([]string, 0, len(items))
	for _, item := range items {
		text, isText := item.(string)
		if m := environmentValue.FindStringSubmatch(text); m != nil {
			if text, isText = s.d.lookup(m[1]); !isText {
				s.d.problem(s.key(name), "%s", needsVariable(m[1]))
				continue
			}
		}

		ok = ok && isText
		all = append(all, text)
	}

	if !ok {
		s.d.problem(s.key(name), "must be a list of texts")
	}

	return all, ok
}
