package schema

import (
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/pg"
)

// builtType matches all possible output of the parser: quoted names or the keywords of interval,
// with integers or literals as modifiers, and brackets.
var builtType = regexp.MustCompile(`^(?s)(?:"(?:[^"\x00]|"")+"\."(?:[^"\x00]|"")+"|interval(?: (?:year|month|day|hour|minute|second|to))*)(?:\((?:-?[0-9]+|'[a-z0-9_]+')(?:,(?:-?[0-9]+|'[a-z0-9_]+'))*\))?(?:\[\]){0,2}$`)

func FuzzParseTypes(f *testing.F) {
	for _, seed := range []string{"integer", "varchar(80)[]", "numeric(10,-2)", `app."Odd ""Type"""`,
		"timestamp(3) with time zone", "interval day to second(3)", "bit varying", "float(24)", "serial",
		"integer,text", "", ",", `"`, `"a".`, "a.b.c", "int)", "int; drop table x", "int\x00", "\xff", "-", "(", "[[",
		"double", "time with", "setof int", "geometry(Point, 4326)[]", "geometry('x')", "geometry(-Point)"} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		types, err := parseTypes(text)
		if err != nil && types != nil {
			t.Errorf("%q: got types and an error", text)
		}

		for _, parsed := range types {
			for _, written := range append(parsed.fallbacks[:], parsed.sql) {
				if written != "" && !builtType.MatchString(written) {
					t.Errorf("%q: got SQL %q", text, written)
				}
			}
		}

		if one, err := parseType(text); (err == nil) != (len(types) == 1) || err == nil && one != types[0] {
			t.Errorf("%q: got %+v as one type (%v), %+v as a list", text, one, err, types)
		}
	})
}

// FuzzShownDefault checks that the representation of a text default parses to the same text.
func FuzzShownDefault(f *testing.F) {
	for _, seed := range []string{
		"draft", "", " a ", "it's", "'", "''", "now()", "NULL", "current_date", "a -- b", "x\ny", "1 references t",
		"current_user", "Ünï", "\\", "a::text", "'a'::text",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, value string) {
		if !pg.Storable(value) {
			return
		}

		printed := "'" + strings.ReplaceAll(value, "'", "''") + "'::text"
		for _, textual := range []bool{true, false} {
			shown := displayDefault(printed, []string{"text"}, textual)
			d, err := parseDefault(shown)
			if err != nil || d.call != "" || d.value != value || d.bare == d.literal || d.cast != "" {
				t.Errorf("%q: got representation %q, which parses to %+v (%v)", value, shown, d, err)
			}
		}
	})
}
