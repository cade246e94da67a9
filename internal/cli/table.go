package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// grid is a table of texts.
type grid struct {
	heads   []string // none for lines of names and values
	rows    [][]string
	numbers []bool   // columns of numbers, which are aligned to the right; may be nil
	lined   bool     // a line is drawn under the heads
	cards   bool     // every row is printed as lines of heads and values
	minor   []string // heads of columns that a narrow terminal leaves out, the last one first
}

const (
	columnGap     = 2
	minTextColumn = 20 // columns of a terminal; a narrower text is hard to read, and a time broken
	maxWord       = 36 // as long as a UUID; longer words are broken if they have to
)

// print prints the table. On a terminal that is too narrow it leaves out columns that say little,
// wraps texts, or prints every row as a card. It never cuts a text off.
func (g grid) print(w io.Writer) error {
	width := widthOf(w)

	var hidden []string
	widths, fits := g.fit(width)
	for !fits && len(g.minor) > 0 {
		last := g.minor[len(g.minor)-1]
		g, hidden = g.without(last), append(hidden, last)
		widths, fits = g.fit(width)
	}

	if len(hidden) > 0 {
		defer fmt.Fprintf(w, "Not shown: %s (--json shows all)\n", strings.ToLower(strings.Join(hidden, ", ")))
	}

	if !fits && g.heads != nil && !g.lined {
		var left []string
		g, left = g.withoutMinor(false)
		if widths, fits = g.fit(width); !fits {
			var id []string
			g, id = g.withoutMinor(true)
			left = append(left, id...)
			widths, fits = g.fit(width)
		}

		if len(left) > 0 {
			defer fmt.Fprintf(w, "Not shown: %s (--json shows all)\n", strings.ToLower(strings.Join(left, ", ")))
		}
	}

	if g.heads != nil && (g.cards || !fits) {
		return g.printCards(w)
	}

	t := table.NewWriter()
	t.SuppressTrailingSpaces()
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: strings.Repeat(" ", columnGap), MiddleHorizontal: "─", MiddleSeparator: "─"},
		Options: table.Options{SeparateHeader: g.lined},
	})

	var configs []table.ColumnConfig
	for i, width := range widths {
		c := table.ColumnConfig{Number: i + 1, WidthMax: width, WidthMaxEnforcer: text.WrapSoft}
		if g.numbers != nil && g.numbers[i] {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}

		configs = append(configs, c)
	}

	t.SetColumnConfigs(configs)

	if g.heads != nil {
		t.AppendHeader(tableRow(g.heads))
	}
	for _, row := range g.rows {
		t.AppendRow(tableRow(row))
	}

	_, err := fmt.Fprintln(w, t.Render())
	return err
}

func tableRow(cells []string) table.Row {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		row[i] = c
	}

	return row
}

// printCards prints every row as lines of heads and values.
func (g grid) printCards(w io.Writer) error {
	for i, row := range g.rows {
		if i > 0 {
			fmt.Fprintln(w)
		}

		var lines [][]string
		for n, text := range row {
			if text != "" {
				lines = append(lines, []string{g.heads[n], text})
			}
		}

		if err := (grid{rows: lines}).print(w); err != nil {
			return err
		}
	}

	return nil
}

// without returns the table without a column, which is the last of the minor ones.
func (g grid) without(head string) grid {
	i := slices.Index(g.heads, head)
	g.minor = g.minor[:len(g.minor)-1]
	g.heads, g.numbers = slices.Delete(slices.Clone(g.heads), i, i+1), slices.Delete(slices.Clone(g.numbers), i, i+1)

	rows := make([][]string, len(g.rows))
	for n, row := range g.rows {
		rows[n] = slices.Delete(slices.Clone(row), i, i+1)
	}
	g.rows = rows

	return g
}

// withoutMinor returns the table without the columns that say little: UUIDs of other things, and
// no for every row. Things with a name lose their own UUID as well if ids is set. It returns the
// heads that it left out too.
func (g grid) withoutMinor(ids bool) (grid, []string) {
	short := grid{lined: g.lined, cards: g.cards, rows: make([][]string, len(g.rows))}
	hasNames := ids && slices.ContainsFunc(g.heads, func(head string) bool {
		return slices.Contains([]string{"NAME", "LABEL", "USERNAME", "FULL FILE NAME"}, head)
	})

	var left []string
	for i, head := range g.heads {
		minor := i > 0 || hasNames
		for _, row := range g.rows {
			minor = minor && (row[i] == "" || row[i] == "no" || uuid.Validate(row[i]) == nil)
		}

		if minor {
			left = append(left, head)
			continue
		}

		short.heads, short.numbers = append(short.heads, head), append(short.numbers, g.numbers[i])
		for n, row := range g.rows {
			short.rows[n] = append(short.rows[n], row[i])
		}
	}

	return short, left
}

// fit returns the widths of the columns in a terminal of a width, or of any if it is 0, and
// whether they fit without a column that is too narrow to read.
func (g grid) fit(terminal int) (widths []int, fits bool) {
	columns := len(g.heads)
	if g.heads == nil && len(g.rows) > 0 {
		columns = len(g.rows[0])
	}

	widths, least := make([]int, columns), make([]int, columns)
	total := columnGap * (columns - 1)
	for i := range columns {
		for _, row := range g.rows {
			widths[i] = max(widths[i], text.LongestLineLen(row[i]))
			least[i] = max(least[i], min(longestWord(row[i]), maxWord))
		}

		least[i] = min(widths[i], max(least[i], minTextColumn))
		if g.heads != nil {
			widths[i] = max(widths[i], text.StringWidth(g.heads[i]))
			least[i] = max(least[i], longestWord(g.heads[i]))
		}

		total += widths[i]
	}

	if terminal == 0 || total <= terminal {
		return widths, true
	}

	// Narrow the widest column that can be narrowed, until all fit.
	for ; total > terminal; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}

		if widest < 0 {
			return widths, false
		}

		widths[widest]--
	}

	return widths, true
}

func longestWord(s string) int {
	longest := 0
	for word := range strings.FieldsSeq(s) {
		longest = max(longest, text.StringWidth(word))
	}

	return longest
}

// cell formats the value of a member. Lists are joined, objects are JSON.
func cell(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return t.Local().Format("2006-01-02 15:04:05")
		}
		return sanitize(v)
	case json.Number:
		if role := roleName(v.String()); name == "roleId" && role != "" {
			return role
		}
		return formatNumber(name, v)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		var texts []string
		for _, item := range v {
			texts = append(texts, cell("", item))
		}
		return strings.Join(texts, ", ")
	case record:
		if v.labels() {
			return cell("", v.value("label")) + ": " + cell("", v.value("value"))
		}

		var texts []string
		for _, m := range v {
			if text := cell(m.name, m.value); text != "" {
				texts = append(texts, title(m.name)+" "+text)
			}
		}
		return strings.Join(texts, ", ")
	}

	return sanitize(fmt.Sprint(v))
}

// formatNumber formats a number: with a unit if it is one of bytes or a duration, and with at most
// four digits after the point.
func formatNumber(name string, number json.Number) string {
	n, err := number.Int64()
	switch {
	case err == nil && isSize(name):
		return formatSize(n)
	case err == nil && name == "duration": // in microseconds
		return (time.Duration(n) * time.Microsecond).String()
	}

	if f, err := number.Float64(); err == nil && strings.ContainsAny(number.String(), ".eE") {
		const digits = 1e4
		return strconv.FormatFloat(math.Round(f*digits)/digits, 'f', -1, 64)
	}

	return number.String()
}

// isSize reports whether a member is a number of bytes.
func isSize(name string) bool {
	words := split(strings.ReplaceAll(name, " ", "_"))
	return len(words) > 0 && slices.Contains([]string{"size", "bytes"}, words[len(words)-1])
}

// formatSize returns a number of bytes with a binary unit.
func formatSize(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}

	size, i := float64(n), -1
	for ; size >= unit && i < 4; i++ {
		size /= unit
	}

	digits := cmp.Compare(100, size) // one, or none from 100
	return fmt.Sprintf("%.*f %ciB", max(digits, 0), size, "KMGTP"[i])
}

// parseSize returns the bytes of a size: a number, or one with a unit as formatSize prints it. KB
// and KiB are both 1024 bytes, as in PostgreSQL.
func parseSize(text string) (int64, error) {
	errSize := errors.New("takes bytes, or a size with a unit, such as 500MB or 10GB")

	digits := strings.TrimRightFunc(text, func(r rune) bool { return r > '9' || r == ' ' })
	unit := strings.ToUpper(strings.TrimSpace(text[len(digits):]))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")

	const units = "KMGTP"
	factor := 1.0
	switch {
	case len(unit) == 1 && strings.Contains(units, unit):
		for range strings.Index(units, unit) + 1 {
			factor *= 1024
		}
	case unit != "":
		return 0, errSize
	default:
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return n, nil
		}
	}

	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n*factor < 0 || n*factor >= math.MaxInt64 || n*factor != math.Trunc(n*factor) {
		return 0, errSize
	}

	return int64(n * factor), nil
}

// sanitize replaces control characters, so that stored text cannot control the terminal.
func sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '�'
		}
		return r
	}, strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}
