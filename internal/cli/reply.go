package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/socle-dev/socle/client"
)

// record is a JSON object with its members in order.
type record []member

type member struct {
	name  string
	value any // as by encoding/json with numbers, but objects are of type record
}

// value returns a member; nil without it.
func (o record) value(name string) any {
	if i := o.index(name); i >= 0 {
		return o[i].value
	}
	return nil
}

func (o record) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == name })
}

// MarshalJSON returns the object as it was decoded.
func (o record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		text, err := json.Marshal(map[string]any{m.name: m.value})
		if err != nil {
			return nil, err
		}

		if i > 0 {
			b.WriteByte(',')
		}

		b.Write(text[1 : len(text)-1])
	}

	return append(append([]byte{'{'}, b.Bytes()...), '}'), nil
}

// decode returns a JSON text as a value; nil for an empty one.
func decode(text json.RawMessage) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}

	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()

	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}

	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := decodeValue(d)
			if err != nil {
				return nil, err
			}

			list = append(list, item)
		}

		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := record{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}

			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}

			o = append(o, member{fmt.Sprint(name), v})
		}

		_, err = d.Token()
		return o, err
	}

	return token, nil
}

// reply is a decoded response.
type reply struct {
	content  any
	metadata record
	list     *list // columns of a list; nil: by its members
}

func newReply(r *client.Reply) (*reply, error) {
	content, err := decode(r.Content)
	if err != nil {
		return nil, err
	}

	metadata, err := decode(r.Metadata)
	if err != nil {
		return nil, err
	}

	p := &reply{content: content}
	p.metadata, _ = metadata.(record)

	return p, nil
}

// print prints a response for people: a list as a table, an object as lines of names and values.
// Notes, such as the page, go to notes. subject is the plural of the listed things.
func (p *reply) print(w, notes io.Writer, subject string) error {
	switch v := p.content.(type) {
	case []any:
		return p.printList(w, notes, v, subject)
	case record:
		return printObject(w, append(v, p.shownMetadata()...))
	case nil:
		fmt.Fprintln(notes, "Done.")
		return printObject(w, p.shownMetadata())
	default:
		_, err := fmt.Fprintln(w, cell("", v))
		return err
	}
}

func (p *reply) printList(w, notes io.Writer, items []any, subject string) error {
	if len(items) == 0 {
		_, err := fmt.Fprintf(notes, "There are no %s.\n", subject)
		return err
	}

	table := printTable
	if p.list != nil {
		table = p.list.print
	}
	if err := table(w, items); err != nil {
		return err
	}

	if pages, ok := p.metadata.value("totalPages").(json.Number); ok && pages != "1" && pages != "0" {
		_, err := fmt.Fprintf(notes, "\nPage %v of %v, %v in total; all: --all\n", p.metadata.value("page"), pages,
			p.metadata.value("total"))
		return err
	}

	if next, _ := p.metadata.value("next").(string); next != "" {
		_, err := fmt.Fprintf(notes, "\nThere are more: --cursor %s, or all: --all\n", next)
		return err
	}

	return nil
}

// neededMetadata are the metadata printed without --json: values shown only once, such as keys and
// codes, the state of a backup, the name of a form's field, and what a change of a table concerns.
var neededMetadata = []string{
	"key", "token", "secret", "password", "url", "recoveryCodes", "link", "size", "provenAt", "proofError", "warnings",
	"missing", "waitingFor", "dependents", "deleted", "mentions", "status", "name",
}

// shownMetadata returns the metadata that people need. The tokens of a session are not among them:
// socle login keeps a session.
func (p *reply) shownMetadata() record {
	session := p.metadata.value("refreshToken") != nil

	var shown record
	for _, m := range p.metadata {
		if all, list := m.value.([]any); list && len(all) == 0 {
			continue
		}
		if slices.Contains(neededMetadata, m.name) && (!session || m.name != "token") {
			shown = append(shown, m)
		}
	}

	return shown
}

// printObject prints the members of an object in lines, and the lists of objects among them as
// tables below.
func printObject(w io.Writer, o record) error {
	var lines [][]string
	var tables record
	for _, m := range flat("", o) {
		if items, ok := m.value.([]any); ok && columnsOf(items) != nil {
			tables = append(tables, m)
			continue
		}

		if text := cell(m.name, m.value); text != "" {
			lines = append(lines, []string{title(m.name), text})
		}
	}

	if len(lines) > 0 {
		if err := (grid{rows: lines}).print(w); err != nil {
			return err
		}
	}

	for _, m := range tables {
		if _, err := fmt.Fprintf(w, "\n%s\n", heading(m.name)); err != nil {
			return err
		}

		items, _ := m.value.([]any)
		if err := printTable(w, items); err != nil {
			return err
		}
	}

	return nil
}

// flat returns the members of an object, with those of objects in it as members of their own.
func flat(prefix string, o record) record {
	var all record
	for _, m := range o {
		m.name = strings.TrimSpace(prefix + " " + m.name)
		if inner, ok := m.value.(record); ok {
			all = append(all, flat(m.name, inner)...)
			continue
		}

		all = append(all, m)
	}

	return all
}

// printTable prints a list as a table.
func printTable(w io.Writer, items []any) error {
	columns := columnsOf(items)
	if columns == nil {
		for _, item := range items {
			if _, err := fmt.Fprintln(w, cell("", item)); err != nil {
				return err
			}
		}

		return nil
	}

	g := grid{numbers: make([]bool, len(columns))}
	for i, c := range columns {
		g.heads = append(g.heads, strings.ToUpper(title(c)))
		g.numbers[i] = true
	}

	for _, item := range items {
		o, _ := item.(record)
		row := make([]string, len(columns))
		for i, c := range columns {
			v := o.value(c)
			_, number := v.(json.Number)
			g.numbers[i] = g.numbers[i] && (number || v == nil)
			row[i] = cell(c, v)
		}

		g.rows = append(g.rows, row)
	}

	return g.print(w)
}

// columnsOf returns the columns of a table: the members that are not empty in every item, without
// those that repeat the command's arguments or that few people need. It returns nil if the items
// are no objects.
func columnsOf(items []any) []string {
	var names []string
	filled := map[string]bool{}
	for _, item := range items {
		o, ok := item.(record)
		if !ok {
			return nil
		}

		for _, m := range o {
			if !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}

			filled[m.name] = filled[m.name] || (scalars(m.value) && cell(m.name, m.value) != "")
		}
	}

	names = slices.DeleteFunc(names, func(name string) bool {
		return !filled[name] || strings.HasSuffix(name, "By") || slices.Contains(leftOut, name)
	})

	// The longest texts come last, where they may be as wide as they are.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(longTexts(items, a), longTexts(items, b)) })
	return names
}

const longText = 60 // characters

// longTexts returns the length of the longest text of a column, or 0 if it is not long.
func longTexts(items []any, column string) int {
	longest := 0
	for _, item := range items {
		o, _ := item.(record)
		longest = max(longest, len(cell(column, o.value(column))))
	}

	if longest < longText {
		return 0
	}

	return longest
}

// leftOut are members that tables leave out.
var leftOut = []string{"updatedAt", "hash", "projectUuid", "formUuid", "organizationUuid", "containerUuid", "position",
	"foreign", "html"}

// labels reports whether an object is a value with a label, such as the answer to a field.
func (o record) labels() bool { return o.index("label") >= 0 && o.index("value") >= 0 }

// scalars reports whether a value, or every item of a list, fits into a cell: it is neither an
// object nor a list.
func scalars(v any) bool {
	switch v := v.(type) {
	case record:
		return v.labels()
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !scalars(item) })
	}

	return true
}

// title returns the words of a member's name.
func title(name string) string {
	if name == "roleId" {
		return "role" // shown by its name
	}
	return sanitize(strings.Join(slices.Compact(split(strings.ReplaceAll(name, " ", "_"))), " "))
}

// heading returns a title that begins with a capital.
func heading(name string) string {
	t := title(name)
	return strings.ToUpper(t[:1]) + t[1:]
}

// printJSON prints the content and metadata of a response as indented JSON.
func printJSON(w io.Writer, r *client.Reply) error {
	text, err := json.Marshal(map[string]json.RawMessage{"content": r.Content, "metadata": r.Metadata})
	if err != nil {
		return err
	}

	return printIndented(w, text)
}

func printIndented(w io.Writer, text json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(text), "", "  "); err != nil {
		return err
	}

	_, err := fmt.Fprintln(w, b.String())
	return err
}

// printContent prints what a command has made of several requests as the content of a response.
func printContent(w io.Writer, content any) error {
	text, err := json.Marshal(map[string]any{"content": content, "metadata": map[string]any{}})
	if err != nil {
		return err
	}

	return printIndented(w, text)
}
