package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"socle/client"
)

// printJSON prints the content and metadata of a response as indented JSON.
func printJSON(w io.Writer, r *client.Reply) error {
	text, err := json.Marshal(map[string]json.RawMessage{"content": r.Content, "metadata": r.Metadata})
	if err != nil {
		return err
	}

	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}

	_, err = fmt.Fprintln(w, b.String())
	return err
}

// printReply prints a response for people: a list as a table, an object as lines of names and
// values.
func printReply(w io.Writer, r *client.Reply) error {
	var content any
	if err := decode(r.Content, &content); err != nil {
		return err
	}

	var metadata map[string]any
	if err := decode(r.Metadata, &metadata); err != nil {
		return err
	}

	switch v := content.(type) {
	case []any:
		return printList(w, v, metadata)
	case map[string]any:
		if err := printObject(w, v); err != nil {
			return err
		}
		return printMetadata(w, metadata)
	case nil:
		fmt.Fprintln(w, "Done.")
		return printMetadata(w, metadata)
	default:
		_, err := fmt.Fprintln(w, cell(v))
		return err
	}
}

func decode(text json.RawMessage, v any) error {
	if len(text) == 0 {
		return nil
	}

	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()

	return d.Decode(v)
}

// printList prints a table of the scalar fields.
func printList(w io.Writer, items []any, metadata map[string]any) error {
	columns := columnsOf(items)
	if len(columns) == 0 {
		for _, item := range items {
			fmt.Fprintln(w, cell(item))
		}
		return nil
	}

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var heads []string
	for _, c := range columns {
		heads = append(heads, strings.ToUpper(strings.Join(split(c), " ")))
	}

	fmt.Fprintln(table, strings.Join(heads, "\t"))

	for _, item := range items {
		object, _ := item.(map[string]any)
		var cells []string
		for _, c := range columns {
			cells = append(cells, clip(cell(object[c])))
		}

		fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}

	if err := table.Flush(); err != nil {
		return err
	}

	if pages, ok := metadata["totalPages"].(json.Number); ok && pages != "1" && pages != "0" {
		_, err := fmt.Fprintf(w, "\nPage %v of %v, %v in total.\n", metadata["page"], pages, metadata["total"])
		return err
	}

	return nil
}

// maxCellWidth bounds the cells of a table, in characters.
const maxCellWidth = 60

func clip(text string) string {
	if utf8.RuneCountInString(text) <= maxCellWidth {
		return text
	}
	return string([]rune(text)[:maxCellWidth-1]) + "…"
}

// columnsOf returns the column names of a table in display order. It omits columns that are empty
// in every row.
func columnsOf(items []any) []string {
	found := map[string]bool{}
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil
		}

		for name, v := range object {
			switch v.(type) {
			case map[string]any, []any, nil:
			default:
				found[name] = found[name] || v != ""
			}
		}
	}

	maps.DeleteFunc(found, func(name string, filled bool) bool {
		return !filled || strings.HasSuffix(name, "By") || name == "updatedAt" || name == "hash"
	})

	return ordered(slices.Collect(maps.Keys(found)))
}

// ordered sorts names for display: identifiers, names, other fields, times.
func ordered(names []string) []string {
	rank := func(name string) int {
		switch {
		case name == "uuid" || name == "id" || name == "seq":
			return 0
		case name == "name" || name == "label" || name == "fullFileName" || name == "username" || name == "schema":
			return 1
		case strings.HasSuffix(name, "At"):
			return 3
		}

		return 2
	}

	slices.SortFunc(names, func(a, b string) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Compare(a, b)
	})

	return names
}

func printObject(w io.Writer, thing map[string]any) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range ordered(slices.Collect(maps.Keys(thing))) {
		fmt.Fprintf(table, "%s\t%s\n", strings.Join(split(name), " "), cell(thing[name]))
	}

	return table.Flush()
}

// printMetadata prints the metadata that users need: values that are shown only once, such as keys,
// tokens and codes, and the result of a proof.
func printMetadata(w io.Writer, metadata map[string]any) error {
	for _, name := range ordered(slices.Collect(maps.Keys(metadata))) {
		switch name {
		case "key", "token", "secret", "url", "recoveryCodes", "link", "uuid", "provenAt", "proofError":
			if _, err := fmt.Fprintf(w, "%s  %s\n", strings.Join(split(name), " "), cell(metadata[name])); err != nil {
				return err
			}
		}
	}

	return nil
}

// cell formats a value in one line.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return t.Local().Format("2006-01-02 15:04:05")
		}
		return sanitize(v)
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}

	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}

	return sanitize(string(text))
}

// sanitize replaces control characters, so that stored text cannot control the terminal.
func sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '�'
		}
		return r
	}, strings.ReplaceAll(text, "\n", " "))
}

// progress is a writer that shows the number of bytes written to it on a terminal.
type progress struct {
	w           io.Writer // nil: not a terminal
	done, total int64     // total -1: unknown
	shown       time.Time
}

const (
	minProgressSize  = 8 << 20 // bytes; smaller transfers show no progress
	progressInterval = 100 * time.Millisecond
)

func newProgress(w io.Writer, total int64) *progress {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) || (total >= 0 && total < minProgressSize) {
		w = nil
	}

	return &progress{w: w, total: total}
}

// Write counts the bytes of b.
func (p *progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	if p.w != nil && time.Since(p.shown) > progressInterval {
		p.shown = time.Now()

		if p.total > 0 {
			filled := int(p.done * 30 / p.total)
			fmt.Fprintf(p.w, "\r[%-30s] %3d %%  %d of %d MiB", strings.Repeat("#", filled), p.done*100/p.total,
				p.done>>20, p.total>>20)
		} else {
			fmt.Fprintf(p.w, "\r%d MiB", p.done>>20)
		}
	}

	return len(b), nil
}

func (p *progress) end() {
	if p.w != nil && p.done > 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
